"""Which device a request means, and the facts that tell one machine's numbers from another's."""

from __future__ import annotations

import platform
from pathlib import Path

from perfkit.errors import UsageError
from perfkit.machine.device import default_device, find_gpu
from perfkit.machine.gpus import list_gpus


def choose_device(stated: str) -> str:
    """`cpu` or `cuda:<index>` for `auto`, `cpu`, `cuda` or `cuda:<index>`.

    Raises:
        UsageError: a GPU was asked for and NVML sees none, or not that many.
    """
    if stated in ("auto", "cpu"):
        return default_device() if stated == "auto" else "cpu"
    device = "cuda:0" if stated == "cuda" else stated
    gpus = list_gpus()
    if find_gpu(device, gpus) is None:
        raise UsageError(
            f"There is no device {device} here.",
            why=f"NVML shows no GPU: {gpus.why_not or 'none is installed'}.",
            do="Use --device cpu, or run `perfkit doctor` on the GPU machine.",
        )
    return device


def device_facts(device: str) -> dict[str, str]:
    """Name of the device, and for a GPU its UUID and driver: whatever makes two results incomparable."""
    if device == "cpu":
        return {"device": cpu_model()}
    gpus = list_gpus()
    gpu = find_gpu(device, gpus)
    if gpu is None:
        return {"device": device}
    return {"device": gpu.name, "uuid": gpu.uuid, "driver": gpus.driver}


def cpu_model(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    """The processor's name as the kernel gives it."""
    try:
        lines = cpuinfo.read_text(errors="replace").splitlines()
    except OSError:
        lines = []
    named = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()
