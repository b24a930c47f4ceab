"""CUDA graphs of whole steps: what cannot be captured, and proof that a replay does the step's work."""

from __future__ import annotations

import gc
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from .failures import describe
from .torch_private import num_compiled_graphs, replace_generator_state

NUM_SIDE_STEPS = 3
"""Steps on the capture stream before a capture, as torch's notes on CUDA graphs ask for."""
BAND_FACTOR = 4.0
"""How many times the largest distance between eager runs a replay may be away from the nearest of them. Our
choice: the band comes from few runs."""
NUM_RUNS = (3, 8)
"""Eager runs behind the band at first, and where a replay lies outside it. Kernels with atomics (attention's
backward, for one) often repeat their bits several times in a row before they differ."""
MAX_BAND = 0.05
"""Steps that differ more than this are not the same step run again: rounding of atomics stays far below."""
CHANGE = 0.75
"""Changed inputs are the old ones, shifted by one row and scaled by this."""

Results = list[tuple[str, torch.Tensor]]


class NotCapturable(Exception):  # noqa: N818 - an accepted outcome, not a fault
    """A step that cannot become a CUDA graph; the text says why in one line."""


class ReplayDiffers(Exception):  # noqa: N818 - names what was found
    """A replay that did not do what the step does; the text says where in one line."""


@dataclass(frozen=True)
class WholeStep:
    """A step as capture needs it."""

    run: Callable[[], Results]
    """One step; returns its outputs and gradients as they lie in memory."""
    clear: Callable[[], None]
    """Drops gradients, and with them all that a step leaves behind."""
    state: tuple[torch.Tensor, ...]
    """What a step reads and might change: parameters, buffers, inputs."""
    inputs: tuple[torch.Tensor, ...]
    """Those of them that may be given other values for the check."""


@dataclass(frozen=True)
class Captured:
    """A graph, the tensors that its replays write to, and the stream it was captured on."""

    graph: torch.cuda.CUDAGraph
    results: Results
    stream: torch.cuda.Stream


def capture(
    run: Callable[[], Any], *, device: torch.device, stream: torch.cuda.Stream | None = None
) -> Captured:
    """Captures what `run` launches, after three runs of it on the capture stream.

    Autograd graphs of earlier steps must be gone: their AccumulateGrad nodes belong to another stream.

    Raises:
        NotCapturable: with the first line of what CUDA or torch said.
    """
    gc.collect()
    stream = stream or torch.cuda.Stream(device)  # type: ignore[no-untyped-call]
    graph = torch.cuda.CUDAGraph()
    try:
        stream.wait_stream(torch.cuda.current_stream(device))
        with torch.cuda.stream(stream):
            for _ in range(NUM_SIDE_STEPS):
                run()
        torch.cuda.current_stream(device).wait_stream(stream)
        # The outer context brings the old stream back even where ending a broken capture raises.
        with torch.cuda.stream(torch.cuda.current_stream(device)), torch.cuda.graph(graph, stream=stream):
            results = run()
    except RuntimeError as error:
        replace_generator_state(device)
        raise NotCapturable(_first_line(_root(error))) from error
    return Captured(graph=graph, results=results or [], stream=stream)


def capture_checked(step: WholeStep, *, device: torch.device) -> Captured:
    """Captures a step and proves that its replay does the same work.

    Compared with uncaptured steps on the same stream, from restored parameters, buffers, inputs and
    random state: one replay on the same inputs, and one on changed inputs copied into the same memory.
    Bits must be equal, except where three uncaptured steps differ among themselves; there the replay may
    be four times as far away (relative L2) as they are from each other. Where they differ by more than
    5% nothing can be proved, and the replay is refused.

    Raises:
        NotCapturable: the step waits for the GPU, or capturing failed.
        ReplayDiffers: a replay's outputs or gradients are not those of the step, or cannot be told to be.
    """
    snapshot = _Snapshot(step.state, device)
    step.clear()
    if where := first_sync(step.run):
        raise NotCapturable(f"the step waits for the GPU: {where}")
    snapshot.restore()
    step.clear()
    # Detached, so that no autograd graph outlives the capture and lends its nodes to later steps.
    captured = capture(lambda: [(n, t.detach()) for n, t in step.run()], device=device)
    for how, change in (("the same inputs", False), ("changed inputs", True)):
        _require_same(step, captured, snapshot, change=change, how=how)
    snapshot.restore()
    step.clear()
    return captured


def first_sync(run: Callable[[], Any]) -> str:
    """Op and line of the first wait for the GPU during an uncaptured run; "" where torch sees none.

    Some waits, such as an explicit torch.cuda.synchronize, are invisible to torch's check; they make the
    capture itself fail.

    Raises:
        NotCapturable: the run failed in another way under the check.
    """
    message = _sync_error(run)
    if message is None:
        return ""
    # A dispatch mode would change what a compiled step runs, so its op stays unnamed.
    if num_compiled_graphs() == 0:
        with _LastOp() as mode:  # type: ignore[no-untyped-call]
            _sync_error(run)
        if mode.name:
            return f"{mode.name} at {message}" if message else mode.name
    return message or "an op without a line of Python"


def _sync_error(run: Callable[[], Any]) -> str | None:
    before = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("error")
    try:
        run()
    except RuntimeError as error:
        if "synchroniz" not in str(error):
            raise NotCapturable(_first_line(error)) from error
        return describe(error).where
    finally:
        torch.cuda.set_sync_debug_mode(before)
    return None


class _LastOp(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Remembers the op that was dispatched last."""

    name = ""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        self.name = str(func)
        return func(*args, **(kwargs or {}))


class _Snapshot:
    """Copies of a step's state, to start every run of the check from the same place."""

    def __init__(self, tensors: tuple[torch.Tensor, ...], device: torch.device) -> None:
        self._tensors = [tensor for tensor in tensors if _can_be_written(tensor)]
        self._copies = [tensor.detach().clone() for tensor in self._tensors]
        self._device = device
        self._random = (torch.get_rng_state(), torch.cuda.get_rng_state(device))

    @torch.no_grad()
    def restore(self) -> None:
        for tensor, copy in zip(self._tensors, self._copies, strict=True):
            tensor.copy_(copy)
        torch.set_rng_state(self._random[0])
        torch.cuda.set_rng_state(self._random[1], self._device)


@torch.no_grad()
def change_in_place(tensors: tuple[torch.Tensor, ...]) -> None:
    """Gives floating tensors other values of similar size; indices and masks stay valid by staying."""
    for tensor in tensors:
        floating = tensor.is_floating_point() or tensor.is_complex()
        if floating and tensor.numel() and _can_be_written(tensor):
            shifted = tensor.roll(1, 0) if tensor.ndim else tensor
            tensor.copy_(shifted * CHANGE)


def _require_same(
    step: WholeStep, captured: Captured, snapshot: _Snapshot, *, change: bool, how: str
) -> None:
    def start() -> None:
        snapshot.restore()
        if change:
            change_in_place(step.inputs)
        torch.cuda.synchronize()

    def uncaptured() -> Results:
        step.clear()
        start()
        with torch.cuda.stream(captured.stream):
            results = [(name, tensor.detach().clone()) for name, tensor in step.run()]
        torch.cuda.synchronize()
        return results

    runs: list[Results] = []
    faults: list[str] = []
    for num_runs in NUM_RUNS:
        while len(runs) < num_runs:
            runs.append(uncaptured())
        start()
        captured.graph.replay()
        torch.cuda.synchronize()
        faults = [
            f"{name} on {how}: {fault}"
            for index, (name, replayed) in enumerate(captured.results)
            if (fault := judge(replayed, [run[index][1] for run in runs]))
        ]
        if not faults:
            return
    raise ReplayDiffers(faults[0])


def judge(replayed: torch.Tensor, eager: list[torch.Tensor]) -> str:
    """What is wrong with a replayed tensor, given those of several uncaptured runs; "" for nothing.

    A distance up to the dtype's rounding unit is never a fault: a replay that leaves out work, or works on
    old inputs, is away by far more.
    """
    band = max(distance(other, eager[0]) for other in eager[1:])
    if band > MAX_BAND:
        return f"a replay cannot be checked, since the step itself differs from run to run by {band:.3g}"
    found = min(distance(replayed, run) for run in eager)
    rounding = torch.finfo(replayed.dtype).eps if replayed.dtype.is_floating_point else 0.0
    if found > max(BAND_FACTOR * band, rounding):
        return f"a replay is {found:.3g} (relative L2) away from the step, whose runs differ by {band:.3g}"
    return ""


@torch.no_grad()
def distance(a: torch.Tensor, b: torch.Tensor) -> float:
    """Relative L2 distance in float64: 0 for equal bits, infinite where it is undefined."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return float("inf")
    if torch.equal(_bytes(a), _bytes(b)):
        return 0.0
    wide = torch.complex128 if b.is_complex() else torch.float64
    found = float(torch.linalg.vector_norm(a.to(wide) - b.to(wide)))
    scale = float(torch.linalg.vector_norm(b.to(wide)))
    return found / scale if scale and found == found else float("inf")


def _can_be_written(tensor: torch.Tensor) -> bool:
    """Not where one element of memory stands for several, as in an expanded tensor; no op writes that."""
    return all(stride or size <= 1 for size, stride in zip(tensor.shape, tensor.stride(), strict=True))


def _bytes(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().resolve_conj().resolve_neg().contiguous().reshape(-1).view(torch.uint8)


def _root(error: BaseException) -> BaseException:
    """The exception raised inside the capture, rather than the one that ending the capture added."""
    inner = error.__context__
    return inner if isinstance(inner, RuntimeError) else error


def _first_line(error: BaseException) -> str:
    described = describe(error)
    lines = described.message.strip().splitlines() or [""]
    where = f" at {described.where}" if described.where else ""
    return f"{described.kind}: {lines[0]}{where}"
