"""Spec in, target out: imports the code, seeds, and builds modules and inputs on the device."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import torch
from torch import nn

from perfkit.errors import PerfkitError
from perfkit.wire.spec import Case, Spec, Target

from .calling import (
    as_keywords,
    call_with_case,
    get_function,
    require_fits,
    require_keywords_used,
    where_is,
)
from .imports import append_to_path, import_dotted, import_file, module_file, private_name
from .overlay import Overlay, lay, prove
from .seeding import seed_everything
from .targets import KernelTarget, LayerTarget
from .tensors import DTYPES, clone_inputs, named_tensors

_SCALARS = (int, float, str, bool, type(None))


def load_target(spec: Spec) -> LayerTarget | KernelTarget:
    """Lays the subject's overlay, imports the target, builds it, and proves that the overlay was used.

    Raises:
        PerfkitError: the target's code does not keep its contract; the text names file and line.
        Exception: whatever the target's own code raises, unchanged.
    """
    code, overlay = load_code(spec)
    loaded = make_target(spec, code)
    if overlay.missing() and isinstance(loaded, KernelTarget):
        # Recipes may import a library inside the function, so that it can be missing.
        loaded.provider("target")(**clone_inputs(loaded.inputs))
        seed_everything(spec.measure.seed)
    prove(overlay)
    return loaded


def load_code(spec: Spec) -> tuple[ModuleType, Overlay]:
    """Imports the target's file or module, with the overlay laid first. Once per process.

    A target's folder is appended to sys.path, so that it can import files beside it; a dotted target
    appends its import_root instead. On the CPU a kernel runs in Triton's interpreter.
    """
    target, _ = _target_and_case(spec)
    _choose_triton_mode(spec, target=target)
    overlay = lay(target, spec.subject.overlay)
    if overlay.target_file is None:
        return import_dotted(target.module, import_root=target.import_root), overlay
    append_to_path(target.import_root)
    append_to_path(str(Path(target.file).parent))
    return import_file(private_name(Path(target.file)), overlay.target_file), overlay


def make_target(spec: Spec, code: ModuleType) -> LayerTarget | KernelTarget:
    """Builds weights and inputs for the spec's case, dtype, device and seed.

    The seed is set before weights exist, again before a recipe's inputs (equal inputs, whatever the
    weights consumed), and once more at the end, so that dropout in the first step is equal too.
    """
    target, case = _target_and_case(spec)
    seed_everything(spec.measure.seed)
    loaded: LayerTarget | KernelTarget
    if target.kind == "kernel":
        loaded = _make_kernel(spec, code, target=target, case=case)
    else:
        loaded = _make_layer(spec, code, target=target, case=case)
    seed_everything(spec.measure.seed)
    return loaded


def _choose_triton_mode(spec: Spec, *, target: Target) -> None:
    on_cpu = torch.device(spec.device).type == "cpu"
    if on_cpu and target.kind == "kernel":
        use_triton_interpreter()
    elif not on_cpu and os.environ.get("TRITON_INTERPRET") == "1":
        raise PerfkitError(
            f"Cannot measure on {spec.device} as things are.",
            why="TRITON_INTERPRET=1 is set, so Triton kernels would run in its interpreter.",
            do="Unset TRITON_INTERPRET, or choose --device cpu.",
        )


def use_triton_interpreter() -> None:
    """Makes Triton interpret kernels; it reads the variable when it is imported and when kernels are defined.

    Raises:
        PerfkitError: Triton was imported before, without it.
    """
    if os.environ.get("TRITON_INTERPRET") == "1":
        return
    if "triton" in sys.modules:
        raise PerfkitError(
            "Cannot run Triton kernels on the CPU in this process.",
            why="Triton was imported before TRITON_INTERPRET=1 was set.",
            do="Set TRITON_INTERPRET=1 in the environment.",
        )
    os.environ["TRITON_INTERPRET"] = "1"


def _target_and_case(spec: Spec) -> tuple[Target, Case]:
    if spec.target is None or spec.case is None:
        raise PerfkitError(
            f"The program {spec.program} needs a target and a case.",
            why="The spec names none.",
            do="Give a target on the command line.",
        )
    return spec.target, spec.case


def _make_layer(spec: Spec, code: ModuleType, *, target: Target, case: Case) -> LayerTarget:
    device, dtype = torch.device(spec.device), DTYPES[spec.dtype]
    file = module_file(code)
    if target.attribute:
        function = get_function(code, target.attribute, file=file, purpose="The target names it")
        require_keywords_used([function], case=case)
        built = call_with_case(function, case=case, device=device, dtype=dtype)
        module, inputs = _as_pair(built, source=where_is(function))
        source = where_is(function)
    else:
        build = get_function(code, "build", file=file, purpose="A layer recipe builds its module with it")
        make = get_function(code, "inputs", file=file, purpose="A layer recipe makes its inputs with it")
        require_keywords_used([build, make], case=case)
        module = call_with_case(build, case=case, device=device, dtype=dtype)
        seed_everything(spec.measure.seed)
        inputs = call_with_case(make, case=case, device=device, dtype=dtype)
        source = where_is(make)
        module = _as_module(module, source=where_is(build))
    _require_on_device(dict(module.named_parameters()), device=device, source=source)
    keywords = as_keywords(inputs, module=module, source=source)
    _check_inputs(keywords, device=device, source=source)
    return LayerTarget(
        name=target.name,
        module=module,
        inputs=keywords,
        recipe_module=code,
        file=file,
        device=device,
        seed=spec.measure.seed,
    )


def _make_kernel(spec: Spec, code: ModuleType, *, target: Target, case: Case) -> KernelTarget:
    device, dtype = torch.device(spec.device), DTYPES[spec.dtype]
    file = module_file(code)
    if target.attribute:
        raise PerfkitError(
            f"{target.name} cannot be loaded as a kernel.",
            why="A kernel is a recipe with inputs, reference and target, not a single callable.",
            do="Write a kernel recipe, or measure the callable as a layer.",
        )
    make = get_function(code, "inputs", file=file, purpose="A kernel recipe makes its inputs with it")
    reference = get_function(code, "reference", file=file, purpose="A kernel recipe is judged against it")
    kernel = get_function(code, "target", file=file, purpose="It is the kernel under test")
    require_keywords_used([make], case=case)
    inputs = call_with_case(make, case=case, device=device, dtype=dtype)
    source = where_is(make)
    _require_kernel_inputs(inputs, source=source)
    for function in (reference, kernel):
        require_fits(function, inputs, source=source)
    _check_inputs(inputs, device=device, source=source)
    return KernelTarget(
        name=target.name,
        inputs=dict(inputs),
        recipe_module=code,
        file=file,
        device=device,
        seed=spec.measure.seed,
    )


def _as_pair(built: Any, *, source: str) -> tuple[nn.Module, Any]:
    if not (isinstance(built, tuple) and len(built) == 2):
        raise PerfkitError(
            f"{source} returned {_type_name(built)}.",
            why="A target's callable returns the pair (module, inputs).",
            do="Return an nn.Module and a dict of its inputs.",
        )
    return _as_module(built[0], source=source), built[1]


def _as_module(value: Any, *, source: str) -> nn.Module:
    if not isinstance(value, nn.Module):
        raise PerfkitError(
            f"{source} returned {_type_name(value)} where a module is expected.",
            why="A layer is an instance of torch.nn.Module.",
            do="Return the module; wrap a plain function into one.",
        )
    return value


def _require_kernel_inputs(inputs: Any, *, source: str) -> None:
    """A kernel's inputs are tensors by name, and scalars such as eps beside them."""
    named = inputs.items() if isinstance(inputs, dict) else ()
    wrong = [f"{k} is {_type_name(v)}" for k, v in named if not isinstance(v, (torch.Tensor, *_SCALARS))]
    if not any(isinstance(value, torch.Tensor) for _, value in named):
        wrong.append("no tensor is among them" if named else f"it returned {_type_name(inputs)}")
    if wrong:
        raise PerfkitError(
            f"{source} does not make inputs for a kernel.",
            why=f"They are a dict of tensors and plain scalars, but {', '.join(wrong)}.",
            do="Return tensors by the name of the parameter that takes them.",
        )


def _check_inputs(inputs: dict[str, Any], *, device: torch.device, source: str) -> None:
    tensors = dict(named_tensors(inputs, ""))
    _require_on_device(tensors, device=device, source=source)
    for name, tensor in tensors.items():
        if tensor.requires_grad and not tensor.is_leaf:
            raise PerfkitError(
                f"{source} returned the input {name} as the result of differentiable operations.",
                why="Its history can be walked backward only once, and its gradient would not be kept.",
                do=f"Return {name}.detach().requires_grad_().",
            )


def _require_on_device(tensors: dict[str, torch.Tensor], *, device: torch.device, source: str) -> None:
    """A single tensor elsewhere may be meant (a CPU scalar); all of them elsewhere never are."""
    found = {tensor.device.type for tensor in tensors.values()}
    if found and device.type not in found:
        raise PerfkitError(
            f"{source} made nothing on {device}.",
            why=f"All its tensors are on {', '.join(sorted(found))}.",
            do="Create tensors with the keyword `device` that the function is given.",
        )


def _type_name(value: Any) -> str:
    if isinstance(value, tuple):
        return f"a tuple of {len(value)}"
    return f"a {type(value).__qualname__}"
