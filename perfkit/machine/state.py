"""Everything the checks look at, collected once: the only part of doctor that touches the machine."""

from __future__ import annotations

import importlib.metadata
import os
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from perfkit.machine.device import find_gpu
from perfkit.machine.gpus import Gpus, GpuState, list_gpus
from perfkit.machine.load import CpuLoad, read_load
from perfkit.wire.payloads import MachineFacts

_GOVERNOR_FILE = Path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor")


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """Installed versions, read from package metadata, without importing anything."""

    torch: str
    """ "" when torch is not installed."""
    triton: str
    triton_wanted: str
    """The version that this torch pins, or "" where it pins none (CPU builds)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineState:
    """The facts behind all checks of one device."""

    device: str
    gpus: Gpus
    gpu: GpuState | None
    """The GPU of `device`; None for the CPU or where NVML does not watch."""
    load: CpuLoad
    versions: Versions
    free_disk_bytes: int
    disk_folder: str
    governor: str = ""
    """ "" where it cannot be read."""
    torch_facts: MachineFacts | None = None
    """What a child process found with torch; None where it could not."""
    torch_error: str = ""


def read_state(
    device: str,
    *,
    folder: Path,
    torch_facts: MachineFacts | None,
    torch_error: str = "",
    environ: Mapping[str, str] = os.environ,
) -> MachineState:
    """Collects the facts; takes half a second, because CPU load is a rate.

    Args:
        folder: where efforts will be written; it need not exist yet.
        torch_facts: answer of the program `describe_machine`, or None with the reason in `torch_error`.

    Raises:
        UsageError: `device` names a GPU that is not there.
    """
    gpus = list_gpus()
    existing = next(p for p in (folder.absolute(), *folder.absolute().parents) if p.exists())
    return MachineState(
        device=device,
        gpus=gpus,
        gpu=find_gpu(device, gpus, environ=environ),
        load=read_load(),
        versions=read_versions(),
        free_disk_bytes=shutil.disk_usage(existing).free,
        disk_folder=str(existing),
        governor=read_governor(),
        torch_facts=torch_facts,
        torch_error=torch_error,
    )


def read_versions() -> Versions:
    """Versions of torch and triton, and the triton that torch's own metadata asks for."""
    return Versions(
        torch=_version("torch"),
        triton=_version("triton"),
        triton_wanted=pinned_version("triton", _requirements("torch")),
    )


def read_governor(file: Path = _GOVERNOR_FILE) -> str:
    """The CPU frequency governor, such as `performance`; "" in most virtual machines."""
    try:
        return file.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""


def pinned_version(package: str, requirements: list[str]) -> str:
    """The version of `package` that a requirement list pins with `==`, or ""."""
    pattern = re.compile(rf"{re.escape(package)}\s*\(?==\s*([^;,\s)]+)")
    return next((found[1] for line in requirements if (found := pattern.match(line.strip()))), "")


def _version(package: str) -> str:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return ""


def _requirements(package: str) -> list[str]:
    try:
        return importlib.metadata.requires(package) or []
    except importlib.metadata.PackageNotFoundError:
        return []
