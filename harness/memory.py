"""Memory of a step: what lay there before it, its peak, and the bytes that it works on."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import torch


@dataclass
class PeakMemory:
    """Bytes that torch's allocator had handed out; None on a CPU, where torch does not count."""

    resident_bytes: int | None = None
    """Just before the steps: weights, inputs, and whatever else stays."""
    peak_bytes: int | None = None
    """Largest at any time during the steps, the resident part included."""


@contextlib.contextmanager
def watch_peak(device: torch.device) -> Iterator[PeakMemory]:
    """Fills in a PeakMemory for the steps run inside; drop gradients and outputs before entering."""
    memory = PeakMemory()
    if device.type != "cuda":
        yield memory
        return
    torch.cuda.synchronize(device)
    torch.cuda.reset_peak_memory_stats(device)
    memory.resident_bytes = torch.cuda.memory_allocated(device)
    yield memory
    torch.cuda.synchronize(device)
    memory.peak_bytes = torch.cuda.max_memory_allocated(device)


def storage_bytes(tensors: Iterable[torch.Tensor]) -> int:
    """Bytes of the distinct storages behind some tensors: views and tied weights count once.

    Of weights, buffers, inputs, outputs and gradients together this is the working set of a step in its
    least form: intermediate results come on top.
    """
    sizes = {}
    for tensor in tensors:
        storage = tensor.untyped_storage()
        sizes[(tensor.device, storage.data_ptr())] = storage.nbytes()
    return sum(sizes.values())
