"""Which device a number belongs to: the default, the NVML index of a CUDA device, and short names."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping

from perfkit.errors import UsageError
from perfkit.machine.gpus import Gpus, GpuState, list_gpus

_VENDOR_WORDS = {"nvidia", "tesla", "geforce", "amd", "instinct", "graphics"}


def default_device(gpus: Gpus | None = None, *, environ: Mapping[str, str] = os.environ) -> str:
    """`cuda:0` where NVML sees a GPU that CUDA_VISIBLE_DEVICES leaves visible, else `cpu`."""
    return "cuda:0" if visible_gpus(gpus or list_gpus(), environ=environ) else "cpu"


def visible_gpus(gpus: Gpus, *, environ: Mapping[str, str] = os.environ) -> tuple[GpuState, ...]:
    """The GPUs that CUDA will show, in its order, as far as that can be told without CUDA.

    CUDA_VISIBLE_DEVICES lists indices or UUID prefixes; the first entry that matches nothing ends the
    list, as the CUDA programming guide (environment variables) states. Without CUDA_DEVICE_ORDER=PCI_BUS_ID
    CUDA may put a faster model first; among GPUs of one model both orders agree.
    """
    stated = environ.get("CUDA_VISIBLE_DEVICES")
    if stated is None:
        return gpus.gpus
    visible: list[GpuState] = []
    for entry in (part.strip() for part in stated.split(",")):
        gpu = _named(entry, gpus.gpus)
        if gpu is None or gpu in visible:
            break
        visible.append(gpu)
    return tuple(visible)


def _named(entry: str, gpus: tuple[GpuState, ...]) -> GpuState | None:
    if entry.isdecimal():
        return next((g for g in gpus if g.index == int(entry)), None)
    matches = [g for g in gpus if entry and g.uuid.startswith(entry)]
    return matches[0] if len(matches) == 1 else None


def find_gpu(device: str, gpus: Gpus, *, environ: Mapping[str, str] = os.environ) -> GpuState | None:
    """The GPU behind `cuda:<index>`; None for `cpu`, and where NVML does not watch.

    Raises:
        UsageError: NVML sees GPUs, but not that many.
    """
    if device == "cpu" or not gpus.watched:
        return None
    index = int(device.partition(":")[2] or 0)
    visible = visible_gpus(gpus, environ=environ)
    if index < len(visible):
        return visible[index]
    names = ", ".join(f"cuda:{i} ({g.name})" for i, g in enumerate(visible)) or "none"
    raise UsageError(
        f"There is no device {device}.",
        why=f"Visible GPUs: {names}.",
        do="Choose another --device, or change CUDA_VISIBLE_DEVICES.",
    )


def device_slug(device: str, gpus: Gpus | None = None, *, environ: Mapping[str, str] = os.environ) -> str:
    """Short name for folder names: `h200`, `a100`, `rtx-4090`, `cpu`; `gpu` where NVML cannot name it.

    Raises:
        UsageError: as `find_gpu`.
    """
    if device == "cpu":
        return "cpu"
    gpu = find_gpu(device, gpus or list_gpus(), environ=environ)
    return name_slug(gpu.name) if gpu else "gpu"


def name_slug(name: str) -> str:
    """The model without vendor, form factor and memory size: `NVIDIA A100-SXM4-80GB` -> `a100`."""
    kept: list[str] = []
    for word in name.lower().split():
        if word in _VENDOR_WORDS:
            continue
        kept.append(re.sub(r"[^a-z0-9]", "", word.partition("-")[0]))
        if any(letter.isdigit() for letter in kept[-1]):
            break
    return "-".join(word for word in kept if word) or "gpu"
