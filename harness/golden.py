"""Reference and golden results of a target: what a subject's numbers are held against.

Golden is the unmodified code, eager, in fp64, on the low-precision weights and inputs cast up. The
reference is the same code in the dtype under test. Both get one random upstream gradient: unlike the
gradient of a loss it does not depend on the result, so a wrong forward cannot make up for a wrong backward.
"""

from __future__ import annotations

import contextlib
import dataclasses
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import torch
from torch import Tensor, nn

from perfkit.errors import PerfkitError
from perfkit.wire.codec import replace
from perfkit.wire.spec import Spec

from .kernel_step import upstream_gradients
from .load import make_target
from .seeding import seed_everything
from .step import LayerStep
from .targets import KernelTarget, LayerTarget
from .tensors import clone_inputs, named_tensors
from .wide import GoldenRun, golden_run, widen_inputs, widen_module


@dataclass(frozen=True)
class Run:
    """One way to run a target once: a call, and the leaves whose gradients are asked for."""

    call: Callable[[], Any]
    clear_grads: Callable[[], None]
    grads: Callable[[], dict[str, Tensor | None]]


@dataclass(frozen=True)
class Computed:
    """Results of one run, detached: `output[1]` and `grad:layers.0.weight`."""

    outputs: dict[str, Tensor]
    grads: dict[str, Tensor | None]


@dataclass(frozen=True)
class Baseline:
    """Everything a subject is compared with under one seed."""

    seed: int
    parameters: dict[str, Tensor]
    buffers: dict[str, Tensor]
    inputs: dict[str, Any]
    upstream: dict[str, Tensor]
    """Gradients of the outputs that require grad, by output name, in the reference's dtypes."""
    reference: Computed
    golden: Computed
    narrow_golden_ops: tuple[str, ...]
    widened_casts: tuple[str, ...]


def seeded(spec: Spec) -> list[Spec]:
    """The spec once per verify seed; each seed draws other weights, inputs and upstream gradients."""
    seeds = spec.measure.verify_seeds or (spec.measure.seed,)
    return [replace(spec, measure=replace(spec.measure, seed=seed)) for seed in dict.fromkeys(seeds)]


def layer_run(target: LayerTarget, inputs: dict[str, Any]) -> Run:
    """The layer's module on these inputs."""
    step = LayerStep(dataclasses.replace(target, inputs=inputs))
    return Run(lambda: step.module(**inputs), step.clear_grads, step.grads)


def kernel_run(call: Callable[..., Any], inputs: Mapping[str, Any]) -> Run:
    """A kernel's provider on these inputs."""
    leaves = {n: t for n, t in inputs.items() if isinstance(t, Tensor) and t.requires_grad}

    def clear_grads() -> None:
        for leaf in leaves.values():
            leaf.grad = None

    return Run(lambda: call(**inputs), clear_grads, lambda: {f"grad:{n}": t.grad for n, t in leaves.items()})


def compute(run: Run, *, seed: int, upstream: Mapping[str, Tensor]) -> Computed:
    """Runs forward, and backward from the upstream gradients of those outputs that have one.

    The seed is set before, so that dropout draws the same numbers where the dtype is the same.
    """
    outputs, differentiable = _forward(run, seed=seed)
    _backward(differentiable, upstream)
    return _collect(run, outputs)


def make_baseline(spec: Spec, code: ModuleType) -> Baseline:
    """Reference and golden for the spec's case and seed, both without any compilation.

    Raises:
        PerfkitError: the golden run needs too much memory, or an op has no fp64 form.
    """
    target = make_target(spec, code)
    seed = spec.measure.seed
    parameters, buffers = _state(target)
    inputs = clone_inputs(target.inputs)
    with eager_only():
        run = _reference_run(target)
        outputs, differentiable = _forward(run, seed=seed)
        upstream = _draw_upstream(differentiable, seed=seed)
        _backward(differentiable, upstream)
        del differentiable
        reference = _collect(run, outputs)
        del run, target
        golden, found = _golden(spec, code, (parameters, buffers), inputs, upstream)
    return Baseline(
        seed=seed,
        parameters=parameters,
        buffers=buffers,
        inputs=inputs,
        upstream=upstream,
        reference=reference,
        golden=golden,
        narrow_golden_ops=tuple(found.narrow),
        widened_casts=tuple(sorted(found.widened)),
    )


@contextlib.contextmanager
def eager_only() -> Iterator[None]:
    """Inside, whatever was compiled runs its original code; compiled code fails under a dispatch mode."""
    if "torch._dynamo" not in sys.modules:
        yield
        return
    with torch.compiler.set_stance("force_eager"):
        yield


def load_state(
    module: nn.Module, parameters: Mapping[str, Tensor], buffers: Mapping[str, Tensor]
) -> list[str]:
    """Gives a module the baseline's weights and buffers; returns the names of buffers on one side only.

    Raises:
        PerfkitError: the parameters differ by name or shape, so that gradients cannot be compared.
    """
    own, own_buffers = dict(module.named_parameters()), dict(module.named_buffers())
    differing = sorted(own.keys() ^ parameters.keys())
    differing += sorted(n for n in own.keys() & parameters.keys() if own[n].shape != parameters[n].shape)
    if differing:
        raise PerfkitError(
            "The variant cannot be verified against the baseline.",
            why=f"Their modules have different parameters: {', '.join(differing[:5])}.",
            do="Keep the names and shapes of parameters, and derive other layouts from them in the forward.",
        )
    shared = [n for n in own_buffers.keys() & buffers.keys() if own_buffers[n].shape == buffers[n].shape]
    with torch.no_grad():
        for name, parameter in own.items():
            parameter.copy_(parameters[name])
        for name in shared:
            own_buffers[name].copy_(buffers[name])
    return sorted((own_buffers.keys() | buffers.keys()) - set(shared))


def _forward(run: Run, *, seed: int) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """All outputs, and those that require grad where gradients are asked for."""
    run.clear_grads()
    seed_everything(seed)
    outputs = dict(named_tensors(run.call(), "output"))
    wanted = bool(run.grads())
    return outputs, {n: t for n, t in outputs.items() if wanted and t.requires_grad}


def _backward(differentiable: Mapping[str, Tensor], upstream: Mapping[str, Tensor]) -> None:
    usable = [n for n, t in differentiable.items() if n in upstream and upstream[n].shape == t.shape]
    if usable:
        gradients = [upstream[n].to(differentiable[n].dtype) for n in usable]
        torch.autograd.backward([differentiable[n] for n in usable], gradients)


def _collect(run: Run, outputs: Mapping[str, Tensor]) -> Computed:
    grads = run.grads()
    run.clear_grads()
    return Computed({n: t.detach() for n, t in outputs.items()}, grads)


def _draw_upstream(differentiable: Mapping[str, Tensor], *, seed: int) -> dict[str, Tensor]:
    if not differentiable:
        return {}
    drawn = upstream_gradients(list(differentiable.values()), seed=seed)
    return dict(zip(differentiable, drawn, strict=True))


def _state(target: LayerTarget | KernelTarget) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Copies, since a forward may change buffers."""
    if isinstance(target, KernelTarget):
        return {}, {}
    parameters = {n: t.detach().clone() for n, t in target.module.named_parameters()}
    return parameters, {n: t.detach().clone() for n, t in target.module.named_buffers()}


def _reference_run(target: LayerTarget | KernelTarget) -> Run:
    if isinstance(target, KernelTarget):
        return kernel_run(target.reference, target.inputs)
    return layer_run(target, target.inputs)


def _golden(
    spec: Spec,
    code: ModuleType,
    state: tuple[dict[str, Tensor], dict[str, Tensor]],
    inputs: dict[str, Any],
    upstream: Mapping[str, Tensor],
) -> tuple[Computed, GoldenRun]:
    try:
        target = make_target(spec, code)
        wide_inputs = widen_inputs(inputs)
        if isinstance(target, KernelTarget):
            run = kernel_run(target.reference, wide_inputs)
        else:
            load_state(target.module, *state)
            widen_module(target.module)
            run = layer_run(target, wide_inputs)
        with golden_run() as found:
            return compute(run, seed=spec.measure.seed, upstream=upstream), found
    except torch.OutOfMemoryError as error:
        raise PerfkitError(
            f"The golden run of {_names(spec)} does not fit into memory.",
            why=f"It needs fp64 throughout, four times the bytes of bf16, and unfused attention: {error}.",
            do="Verify a smaller case with --cases; correctness of a shape seldom depends on its length.",
        ) from error
    except RuntimeError as error:
        if "not implemented for 'Double'" not in str(error):
            raise
        raise PerfkitError(
            f"There is no golden run of {_names(spec)}.",
            why=f"One of its ops does not exist in fp64: {error}.",
            do="Give the eager form of that op in the recipe's reference, or in the layer's eager code.",
        ) from error


def _names(spec: Spec) -> str:
    assert spec.target is not None
    assert spec.case is not None
    return f"{spec.target.name}, case {spec.case.name}"
