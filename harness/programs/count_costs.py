"""Counts what one eager step costs: the ledger of its ops, and a trace in which each op is labelled."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from perfkit.wire.codec import encode
from perfkit.wire.environment import Environment
from perfkit.wire.ledger import Ledger
from perfkit.wire.payloads import Costs
from perfkit.wire.spec import Spec

from ..checkpointing import apply_checkpointing
from ..clocks import quiet
from ..environment import read_environment, settle
from ..kernel_step import KernelStep
from ..kernels_seen import profiled_run
from ..labelled_run import labelled_run
from ..ledger import force_eager, record_ledger
from ..load import load_target
from ..step import LayerStep
from ..targets import KernelTarget, LayerTarget

LEDGER_FILE = "ledger.json"
TRACE_FILE = "trace.json.gz"
PLAIN_TRACE_FILE = "plain.json.gz"


def run(spec: Spec, *, slot_dir: Path) -> tuple[Costs, Environment]:
    """Takes the ledger, then profiles the same step without labels and with them.

    Whatever the subject's tree is, the step runs eagerly: ops inside a compiled graph cannot be told
    apart. Checkpointing is applied as the spec says.
    """
    settle(spec)
    target = load_target(spec)
    step = _eager_step(spec, target)
    leaves = _leaves(target)
    module = target.module if isinstance(target, LayerTarget) else None
    for _ in range(max(1, spec.measure.num_warmup_steps)):
        with force_eager():
            step()
    ledger = record_ledger(step, module=module, leaves=leaves)
    (slot_dir / LEDGER_FILE).write_bytes(encode(ledger))
    costs = _profiled(spec, step, ledger=ledger, trace_file=slot_dir / TRACE_FILE)
    return costs, read_environment(spec, device=target.device, target_file=target.file)


def _eager_step(spec: Spec, target: LayerTarget | KernelTarget) -> Callable[[], Any]:
    assert spec.target is not None
    if isinstance(target, KernelTarget):
        kernel = KernelStep(target, spec.subject.provider or "eager")
        return kernel.full if target.grad_names else kernel.forward
    apply_checkpointing(target.module, blocks=spec.target.blocks, mode=spec.measure.checkpoint)
    return LayerStep(target)


def _leaves(target: LayerTarget | KernelTarget) -> dict[str, torch.Tensor]:
    """Tensors whose gradients a step accumulates, by the name under which tables show them."""
    leaves = {name: t for name, t in target.inputs.items() if isinstance(t, torch.Tensor) and t.requires_grad}
    if isinstance(target, LayerTarget):
        leaves |= {name: p for name, p in target.module.named_parameters() if p.requires_grad}
    return leaves


def _profiled(spec: Spec, step: Callable[[], Any], *, ledger: Ledger, trace_file: Path) -> Costs:
    device, num_steps = torch.device(spec.device), spec.measure.num_profiled_steps
    labelled = None
    plain_file = trace_file.with_name(PLAIN_TRACE_FILE)
    with force_eager(), quiet():
        plain = profiled_run(
            step,
            device=device,
            direction="full",
            cache="warm",
            num_steps=num_steps,
            trace_file=plain_file,
        )
        if spec.measure.labelled_trace:
            labelled = labelled_run(step, device=device, num_steps=num_steps, trace_file=trace_file)
    names = tuple(op.name for op in ledger.ops)
    return Costs(
        ledger_file=LEDGER_FILE,
        trace_file=TRACE_FILE if labelled else "",
        plain_trace_file=PLAIN_TRACE_FILE if plain_file.is_file() else "",
        num_ops=len(ledger.ops),
        num_traced_steps=num_steps if labelled else 0,
        plain_kernel_time_us=plain.time_us,
        labelled_kernel_time_us=labelled.time_us if labelled else plain.time_us,
        same_ops=labelled is None or all(step_names == names for step_names in labelled.names),
        notes=_notes(spec, ledger),
    )


def _notes(spec: Spec, ledger: Ledger) -> tuple[str, ...]:
    notes = []
    if spec.subject.tree != "eager" or spec.subject.provider == "compile":
        notes.append(f"Ops and their times are those of the eager step, not of {spec.subject.label}.")
    if any(op.name.startswith("flex_attention") for op in ledger.ops):
        notes.append("flex_attention ran its unfused eager form, which nobody would use: ignore its time.")
    unknown = sorted({op.name for op in ledger.ops if not op.known_traffic})
    if unknown:
        notes.append(f"No floor can be stated for {', '.join(unknown)}: what they read and write is unknown.")
    return tuple(notes)
