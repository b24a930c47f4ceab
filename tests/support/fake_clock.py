"""A clock whose time passes only when a test says so, with the device's work beside the host's."""

from __future__ import annotations


class FakeClock:
    """Work is charged with `work_us`; marks read the charged sum, as events read the GPU's time."""

    name = "cuda_events"

    def __init__(self) -> None:
        self.now_us = 0.0
        self.log: list[str] = []

    def work(self, what: str, work_us: float) -> None:
        """Something runs for a while."""
        self.log.append(what)
        self.now_us += work_us

    def mark(self) -> float:
        self.log.append("mark")
        return self.now_us

    def elapsed_us(self, start: float, end: float) -> float:
        return end - start

    def wait(self) -> None:
        self.log.append("wait")

    def host_s(self) -> float:
        return self.now_us / 1e6
