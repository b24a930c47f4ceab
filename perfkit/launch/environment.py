"""The environment of a child: inherited on purpose, minus what would spoil a measurement."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

MARKER = "PERFKIT_SLOT_ID"
"""Every process that descends from a child carries this variable, so that none can be lost from sight."""

SCRATCH = "scratch"
"""Folder inside the slot for compile caches; it is removed when the slot ends."""

SPOILERS = frozenset(
    {
        "CUDA_LAUNCH_BLOCKING",  # serialises host and device: every time grows
        "PYTORCH_NO_CUDA_MEMORY_CACHING",  # a cudaMalloc per tensor
        "TORCHDYNAMO_DISABLE",  # compiled trees would silently run eagerly
        "TORCH_COMPILE_DISABLE",
        "TRITON_INTERPRET",  # the harness alone decides when the interpreter runs
        "PYTHONINSPECT",  # would wait for a prompt
        "PYTHONPROFILEIMPORTTIME",
    }
)
"""Debugging switches that a shell may still hold and that change what is measured."""


def child_environment(
    base: Mapping[str, str], *, slot_dir: Path, marker: str, extra: Mapping[str, str] | None = None
) -> dict[str, str]:
    """The variables of a child whose compile caches start empty and are shared with nobody.

    PYTHONPATH stays: the user's code may need it. `extra` wins over all but the marker.
    """
    scratch = slot_dir / SCRATCH
    environment = {name: value for name, value in base.items() if name not in SPOILERS}
    environment |= {
        "PYTHONUNBUFFERED": "1",
        "PYTHONFAULTHANDLER": "1",
        # torch and code that Inductor compiles bring an OpenMP pool each. On a CPU with few cores their idle
        # threads spin against each other's work: steps of 5 ms were seen to take 800.
        "OMP_WAIT_POLICY": base.get("OMP_WAIT_POLICY", "PASSIVE"),
        "TORCHINDUCTOR_CACHE_DIR": os.fspath(scratch / "inductor"),
        "TRITON_CACHE_DIR": os.fspath(scratch / "triton"),
    }
    environment |= extra or {}
    environment[MARKER] = marker
    return environment
