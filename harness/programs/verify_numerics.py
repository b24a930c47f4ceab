"""Raw errors of a subject against golden and reference: every output, every gradient, several seeds.

The verdict is computed outside, from what this program answers (perfkit/numerics).
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

from perfkit.errors import PerfkitError
from perfkit.wire.codec import replace
from perfkit.wire.environment import Environment
from perfkit.wire.payloads import CheckedCase, TensorCheck, Verified
from perfkit.wire.spec import Spec

from ..aside import compute_aside, read_baseline
from ..assemble import assemble, compiles
from ..compare import Sides, check_tensor, worst_of
from ..environment import read_environment, settle
from ..golden import Baseline, Computed, compute, kernel_run, layer_run, load_state, make_baseline, seeded
from ..kernel_step import KernelStep
from ..launches import watch_launches
from ..step import LayerStep
from ..tensors import clone_inputs
from ..trees import forget_compiled, num_graphs, require_graphs

_NUM_RUNS_IF_UNEQUAL = 3


def run(spec: Spec, *, slot_dir: Path) -> tuple[Verified, Environment]:
    """Checks the spec's subject on its case (a kernel: on all its cases) under every verify seed.

    A variant of a layer is compared with baselines from another process, because the overlay hides the
    unmodified code in this one. Its files lie in the slot's scratch folder and are removed when read.

    Raises:
        PerfkitError: there is no format wider than the dtype, the golden run does not fit into memory,
            the variant has other parameters, or a compiled subject compiled nothing.
    """
    settle(spec)
    _require_wider_golden(spec)
    specs = _one_per_case(spec)
    asides = [slot_dir / "scratch" / f"baselines-{index}" for index, _ in enumerate(specs)]
    if _needs_aside(spec):
        for one, aside in zip(specs, asides, strict=True):
            compute_aside(one, folder=aside)
    subject = _Subject.assembled(specs[0])
    cases: list[CheckedCase] = []
    for one, aside in zip(specs, asides, strict=True):
        cases += _check_case(one, subject, aside=aside)
    target = subject.step.target
    verified = Verified(cases=tuple(cases), subject_ran=_what_ran(spec, subject))
    return verified, read_environment(spec, device=target.device, target_file=target.file)


def _one_per_case(spec: Spec) -> list[Spec]:
    """The spec once per case; only a kernel's provider can be called with inputs of another shape."""
    if spec.further_cases and (spec.target is None or spec.target.kind != "kernel"):
        raise PerfkitError(
            "Several cases cannot be verified in one process.",
            why="A layer is built for its shape, so each case needs a module, and a process, of its own.",
            do="Verify one case per slot.",
        )
    cases = (spec.case, *spec.further_cases)
    return [replace(spec, case=case, further_cases=()) for case in cases]


def _check_case(spec: Spec, subject: _Subject, *, aside: Path) -> list[CheckedCase]:
    """One case under every verify seed."""
    if compiles(spec) and isinstance(subject.step, KernelStep):
        # Each shape compiles anew; without the reset, the limit of recompiles would end in eager runs.
        forget_compiled()
    checked = []
    for one in seeded(spec):
        if _needs_aside(spec):
            baseline = read_baseline(aside, seed=one.measure.seed)
        else:
            baseline = make_baseline(one, subject.code)
        checked.append(_check(one, baseline, subject))
    return checked


@dataclass(frozen=True)
class _Subject:
    """What is checked; it is built and compiled once, and gets each seed's weights and inputs."""

    step: LayerStep | KernelStep
    call: Callable[..., object] | None
    """The provider of a kernel; None for a layer."""
    launched: dict[str, None]

    @classmethod
    def assembled(cls, spec: Spec) -> _Subject:
        step = assemble(spec)
        if isinstance(step, KernelStep):
            return cls(step, step.target.provider(step.provider), {})
        return cls(step, None, {})

    @property
    def code(self) -> ModuleType:
        return self.step.target.recipe_module

    def compute(self, baseline: Baseline) -> tuple[Computed, list[str]]:
        """One run on the baseline's weights and fresh copies of its inputs; and buffers on one side only."""
        inputs, unshared = clone_inputs(baseline.inputs), []
        if isinstance(self.step, LayerStep):
            unshared = load_state(self.step.module, baseline.parameters, baseline.buffers)
            run = layer_run(self.step.target, inputs)
        else:
            assert self.call is not None
            run = kernel_run(self.call, inputs)
        with watch_launches() as launched:
            computed = compute(run, seed=baseline.seed, upstream=baseline.upstream)
        self.launched.update(launched)
        return computed, unshared


def _check(spec: Spec, baseline: Baseline, subject: _Subject) -> CheckedCase:
    """Runs the subject twice on identical inputs, and once more where the bits differ; the worst counts."""
    assert spec.case is not None
    computed, unshared = subject.compute(baseline)
    checks = _compare(baseline, computed)
    repeats_equal, num_runs = True, 1
    while num_runs < (2 if repeats_equal else _NUM_RUNS_IF_UNEQUAL):
        del computed
        computed, _ = subject.compute(baseline)
        again = _compare(baseline, computed)
        repeats_equal &= [c.digest_target for c in again] == [c.digest_target for c in checks]
        checks = [worst_of(a, b) for a, b in zip(checks, again, strict=True)]
        num_runs += 1
    return CheckedCase(
        case=spec.case.name,
        seed=baseline.seed,
        golden_dtype="fp64",
        tensors=tuple(checks),
        repeats_equal=repeats_equal,
        narrow_golden_ops=baseline.narrow_golden_ops,
        target_is_reference=_is_reference(spec, subject),
        notes=tuple(_notes(spec, baseline, unshared)),
    )


def _compare(baseline: Baseline, target: Computed) -> list[TensorCheck]:
    golden, reference = baseline.golden, baseline.reference
    checks = []
    for name in dict.fromkeys((*reference.outputs, *golden.outputs, *target.outputs)):
        sides = Sides(
            golden=golden.outputs.get(name),
            reference=reference.outputs.get(name),
            target=target.outputs.get(name),
        )
        checks.append(check_tensor(name, "output", sides))
    for name in dict.fromkeys((*reference.grads, *golden.grads, *target.grads)):
        sides = Sides(
            golden=golden.grads.get(name), reference=reference.grads.get(name), target=target.grads.get(name)
        )
        checks.append(check_tensor(name, "gradient", sides))
    return checks


def _notes(spec: Spec, baseline: Baseline, unshared: list[str]) -> list[str]:
    notes = []
    if baseline.widened_casts:
        notes.append(f"Casts widened to fp64 in the golden run: {', '.join(baseline.widened_casts)}.")
    if _needs_aside(spec):
        notes.append("Reference and golden come from the unmodified code in a process of their own.")
    if unshared:
        notes.append(f"Buffers that only one of baseline and variant has: {', '.join(unshared)}.")
    return notes


def _needs_aside(spec: Spec) -> bool:
    """Whether the overlay may hide code of the reference.

    A kernel's reference stands in the recipe itself, which a variant of its source leaves alone.
    """
    if not spec.subject.overlay or spec.target is None:
        return False
    own_file = spec.target.file.rpartition("/")[2]
    replaced = [file.replaces for file in spec.subject.overlay]
    return spec.target.kind == "layer" or own_file in replaced or spec.target.module in replaced


def _is_reference(spec: Spec, subject: _Subject) -> bool:
    if compiles(spec):
        return False
    if isinstance(subject.step, KernelStep):
        return subject.call is not None and _bare(subject.call) is _bare(subject.step.target.reference)
    plain = spec.measure.checkpoint == "none" and not spec.subject.overlay
    return plain and spec.subject.tree == "eager"


def _bare(function: Callable[..., object]) -> object:
    return getattr(function, "__wrapped__", function)


def _what_ran(spec: Spec, subject: _Subject) -> str:
    if compiles(spec):
        require_graphs(subject.step.target.name)
        return f"compiled ({num_graphs()} graphs)"
    if subject.launched:
        return "triton interpreter" if os.environ.get("TRITON_INTERPRET") == "1" else "triton"
    return "eager"


def _require_wider_golden(spec: Spec) -> None:
    if spec.dtype == "fp64":
        raise PerfkitError(
            "Nothing can be verified in fp64.",
            why="Golden is fp64 itself, so there is no wider format to measure errors with.",
            do="Verify in fp32, bf16 or fp16.",
        )
