"""Every torch-private hook that the harness uses, each behind a probe, with the versions it was seen on."""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.multiprocessing.reductions import StorageWeakRef

from perfkit.errors import PerfkitError


def num_compiled_graphs() -> int:
    """Graphs that Dynamo has compiled in this process; 0 where Dynamo was never imported.

    `torch._dynamo.utils.counters["stats"]["unique_graphs"]`; seen on 2.11 and 2.13.
    """
    if "torch._dynamo" not in sys.modules:
        return 0
    from torch._dynamo.utils import counters

    return int(counters["stats"]["unique_graphs"])


def gpu_sleep() -> Callable[[int], None] | None:
    """Enqueues a kernel that spins for a number of GPU clock cycles; None where torch has none.

    `torch.cuda._sleep`; seen on 2.11 and 2.13.
    """
    return getattr(torch.cuda, "_sleep", None)


def replace_generator_state(device: torch.device) -> None:
    """Gives the GPU's default generator a fresh state object with the same seed, at its start.

    A capture that broke off leaves the old object waiting for the end of the capture, and every random
    op after it fails. `graphsafe_set_state`; seen on 2.11 and 2.13.
    """
    index = torch.cuda.current_device() if device.index is None else device.index
    generator = torch.cuda.default_generators[index]
    if hasattr(generator, "graphsafe_set_state"):
        fresh = torch.Generator(device).manual_seed(generator.initial_seed())
        generator.graphsafe_set_state(fresh.graphsafe_get_state())


@contextlib.contextmanager
def count_interpreted_launches() -> Iterator[list[int]]:
    """A one-item list that counts the kernels which Triton's CPU interpreter runs inside the block.

    `triton.runtime.interpreter.GridExecutor.__call__`; seen on Triton 3.6 and 3.9. Stays 0 where Triton
    is not loaded.
    """
    count = [0]
    module = sys.modules.get("triton.runtime.interpreter")
    executor = getattr(module, "GridExecutor", None)
    if executor is None:
        yield count
        return
    original = executor.__call__

    def counted(self: Any, *args: Any, **kwargs: Any) -> Any:
        count[0] += 1
        return original(self, *args, **kwargs)

    executor.__call__ = counted
    try:
        yield count
    finally:
        executor.__call__ = original


def graph_task() -> int:
    """The id of the backward pass that runs on this thread; -1 outside of any.

    `torch._C._current_graph_task_id`; seen on 2.13.
    """
    return int(_need(torch._C, "_current_graph_task_id")())


def next_sequence_number() -> int:
    """The number that the next autograd node of this thread will get.

    The node of an op is made before the op reaches a dispatch mode, so there the op's own node has the
    number below. `torch._C._autograd._get_sequence_nr`; seen on 2.13.
    """
    return int(_need(torch._C._autograd, "_get_sequence_nr")())


def running_node() -> Any:
    """The autograd node that runs on this thread, or None. `_sequence_nr()` gives its number.

    `torch._C._current_autograd_node`; seen on 2.13.
    """
    return _need(torch._C, "_current_autograd_node")()


def weak_storage(tensor: torch.Tensor) -> StorageWeakRef:
    """A weak reference to a tensor's storage: `cdata`, and `expired()` once the memory is freed.

    The address `cdata` is not reused while the reference exists.
    `torch.multiprocessing.reductions.StorageWeakRef`; seen on 2.13.
    """
    return StorageWeakRef(tensor.untyped_storage())  # type: ignore[no-untyped-call]


@contextlib.contextmanager
def observed_launches(observe: Callable[[str, list[torch.Tensor], Callable[[], Any]], Any]) -> Iterator[None]:
    """Hands each Triton launch inside the block to `observe(name, tensors, launch)`, which must run `launch`.

    Dispatch modes do not see these launches. Replaces `triton.runtime.jit.JITFunction.run` and, for the
    CPU interpreter, `triton.runtime.interpreter.InterpretedFunction.run`; seen on Triton 3.6 and 3.9.
    Does nothing where Triton is not loaded, since nothing can launch a kernel then.
    """
    with contextlib.ExitStack() as stack:
        for module, name in (("jit", "JITFunction"), ("interpreter", "InterpretedFunction")):
            owner = getattr(sys.modules.get(f"triton.runtime.{module}"), name, None)
            if owner is not None:
                stack.enter_context(_observed_runs(owner, observe))
        yield


@contextlib.contextmanager
def _observed_runs(owner: Any, observe: Callable[..., Any]) -> Iterator[None]:
    original = _need(owner, "run")

    def run(self: Any, *args: Any, **kwargs: Any) -> Any:
        if kwargs.get("warmup"):
            return original(self, *args, **kwargs)
        tensors = [v for v in (*args, *kwargs.values()) if isinstance(v, torch.Tensor)]
        return observe(str(self.__name__), tensors, lambda: original(self, *args, **kwargs))

    owner.run = run
    try:
        yield
    finally:
        owner.run = original


def _need(owner: Any, name: str) -> Any:
    found = getattr(owner, name, None)
    if found is None:
        raise PerfkitError(
            "Cannot follow the ops of a step with this torch.",
            why=f"torch {torch.__version__} has no {getattr(owner, '__name__', owner)}.{name}.",
            do="Use a torch version that this hook was seen on (harness/torch_private.py names it).",
        )
    return found
