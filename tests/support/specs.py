"""Specs of small targets that tests write into a temporary folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from perfkit.wire.codec import file_digest
from perfkit.wire.spec import Case, Measure, OverlayFile, Spec, Subject, Target


def layer_spec(
    file: Path | None,
    *,
    values: dict[str, Any] | None = None,
    target: dict[str, Any] | None = None,
    **spec: Any,
) -> Spec:
    """A layer on the CPU in fp32; `target` and `spec` add fields to the structs of that name."""
    named = {"name": "toy", "kind": "layer", "file": str(file or ""), **(target or {})}
    spec = {"program": "time_step", "device": "cpu", "measure": Measure(), **spec}
    return Spec(target=Target(**named), case=Case(name="tiny", values=values or {}), **spec)


def kernel_spec(file: Path, *, target: dict[str, Any] | None = None, **spec: Any) -> Spec:
    """A kernel recipe on the CPU in fp32."""
    return layer_spec(file, target={"kind": "kernel", **(target or {})}, **spec)


def variant(*files: OverlayFile) -> Subject:
    """The subject v1 with these files laid over."""
    return Subject(variant="v1", overlay=files)


def overlay_file(path: Path, *, replaces: str) -> OverlayFile:
    """A variant's file as it is now."""
    return OverlayFile(replaces=replaces, path=str(path), sha256=file_digest(path))


def write(path: Path, text: str) -> Path:
    """Writes a file and the folders above it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="ascii")
    return path
