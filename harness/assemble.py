"""Spec in, runnable step out: load, checkpoint, compile."""

from __future__ import annotations

from perfkit.wire.spec import Spec

from .checkpointing import apply_checkpointing
from .kernel_step import KernelStep
from .load import load_target
from .step import LayerStep
from .targets import KernelTarget
from .trees import apply_tree, require_compiler


def assemble(spec: Spec) -> LayerStep | KernelStep:
    """The step that a spec's subject describes; what it compiles is compiled by its first call.

    Call `environment.settle` before, and `trees.require_graphs` after the warm-up of anything compiled.

    Raises:
        PerfkitError: see load_target, apply_checkpointing and apply_tree.
    """
    target, subject = load_target(spec), spec.subject
    assert spec.target is not None
    if isinstance(target, KernelTarget):
        if subject.provider == "compile":
            require_compiler(target.device)
        return KernelStep(target, subject.provider)
    apply_checkpointing(target.module, blocks=spec.target.blocks, mode=spec.measure.checkpoint)
    apply_tree(target, subject.tree, blocks=spec.target.blocks, regions=spec.target.regions)
    return LayerStep(target)


def compiles(spec: Spec) -> bool:
    """Whether a run of this spec must have compiled at least one graph."""
    return spec.subject.provider == "compile" or (not spec.subject.provider and spec.subject.tree != "eager")
