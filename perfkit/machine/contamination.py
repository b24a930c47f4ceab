"""The rule, fixed beforehand, by which a slot counts as contaminated: kept, counted, and run again."""

from __future__ import annotations

from perfkit.wire.results import Watch


def contamination(watch: Watch | None) -> str:
    """Why the slot's numbers cannot be used, as one sentence; "" where nothing speaks against them.

    Two things contaminate: a foreign process on the GPU at any poll, and a thermal or hardware slowdown
    at any poll. Temperature and clock alone never do, and a device that is not watched gives no evidence.
    """
    if watch is None or not watch.watched:
        return ""
    reasons = []
    if watch.foreign_pids:
        pids = ", ".join(str(pid) for pid in watch.foreign_pids)
        noun = "a foreign process was" if len(watch.foreign_pids) == 1 else "foreign processes were"
        reasons.append(f"{noun} on the GPU (pid {pids})")
    if watch.slowdown_reasons:
        reasons.append(f"the GPU slowed down ({', '.join(watch.slowdown_reasons)})")
    text = " and ".join(reasons)
    return f"{text[0].upper()}{text[1:]}." if text else ""
