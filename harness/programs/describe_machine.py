"""What only torch can tell about a machine: each probe runs on its own, and its error text is kept."""

from __future__ import annotations

import functools
import importlib.util
import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from perfkit.wire.environment import Environment
from perfkit.wire.payloads import MachineFacts
from perfkit.wire.spec import Spec

from .. import environment

NO_GPU = "no GPU"
BACKENDS = {
    "flash": SDPBackend.FLASH_ATTENTION,
    "efficient": SDPBackend.EFFICIENT_ATTENTION,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
    "math": SDPBackend.MATH,
}
COMPILERS = ("g++", "clang++", "gcc", "clang", "cc")


def run(spec: Spec, *, slot_dir: Path) -> tuple[MachineFacts, Environment]:
    """Probes CUDA, Triton, torch.compile and attention on the spec's device; leaves no file."""
    default_precision = torch.get_float32_matmul_precision()
    cuda_error = error_of(_use_cuda) if torch.cuda.is_available() else NO_GPU
    device = torch.device(spec.device)
    if device.type == "cuda" and cuda_error:
        device = torch.device("cpu")  # the other probes still have something to say
    else:
        environment.settle(spec)
    triton_error = error_of(_use_triton) if torch.cuda.is_available() else NO_GPU
    compile_error = error_of(lambda: _use_compile(device))
    facts = MachineFacts(
        gpus=tuple(torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())),
        cuda_works=not cuda_error,
        cuda_error=cuda_error,
        triton_works=not triton_error,
        triton_error=triton_error,
        compile_works=not compile_error,
        compile_error=compile_error,
        attention_backends=_backends(device),
        default_fp32_precision=default_precision,
        compiler=find_compiler(),
    )
    return facts, environment.read_environment(spec, device=device, target_file=None)


def error_of(probe: Callable[[], object]) -> str:
    """Runs a probe; "" if it worked, else the kind and first line of its error."""
    try:
        probe()
    except _expected_errors() as error:
        lines = str(error).strip().splitlines()
        return f"{type(error).__name__}: {lines[0]}" if lines else type(error).__name__
    return ""


def _backends(device: torch.device) -> tuple[str, ...]:
    return tuple(
        name for name, backend in BACKENDS.items() if not error_of(functools.partial(attend, backend, device))
    )


def attend(backend: SDPBackend, device: torch.device) -> None:
    """Runs a small causal attention, forward and backward, with one backend only."""
    dtype = torch.bfloat16 if device.type == "cuda" else torch.float32
    q, k, v = (torch.randn(1, 2, 128, 64, device=device, dtype=dtype, requires_grad=True) for _ in range(3))
    with sdpa_kernel([backend]):
        out = scaled_dot_product_attention(q, k, v, is_causal=True)
    out.float().sum().backward()  # type: ignore[no-untyped-call]
    _require(out.float(), scaled_dot_product_attention(q.float(), k.float(), v.float(), is_causal=True))


def find_compiler() -> str:
    """Path of the C or C++ compiler that Inductor and Triton would call; "" for none."""
    named = [os.environ[name].split()[0] for name in ("CXX", "CC") if os.environ.get(name)]
    return next((path for name in (*named, *COMPILERS) if (path := shutil.which(name))), "")


def _expected_errors() -> tuple[type[Exception], ...]:
    """What a broken installation raises; Triton's own errors derive from Exception alone."""
    expected = (RuntimeError, ImportError, OSError, ValueError, TypeError, AttributeError, AssertionError)
    if importlib.util.find_spec("triton") is None:
        return (*expected, subprocess.SubprocessError)
    from triton.errors import TritonError

    return (*expected, subprocess.SubprocessError, TritonError)


def _use_cuda() -> None:
    x = torch.ones(256, 256, device="cuda")
    _require((x @ x)[0, 0], torch.tensor(256.0, device="cuda"))


def _use_triton() -> None:
    if importlib.util.find_spec("triton") is None:
        raise ImportError("triton is not installed")
    from ..triton_read import store_one

    out = torch.zeros(1, device="cuda")
    store_one(out)
    _require(out, torch.ones_like(out))


def _use_compile(device: torch.device) -> None:
    x = torch.linspace(0.0, 1.0, 100, device=device)
    compiled = torch.compile(lambda x: x.sin() * 2.0 + x, fullgraph=True)
    _require(compiled(x), x.sin() * 2.0 + x)


def _require(found: torch.Tensor, wanted: torch.Tensor) -> None:
    """Close enough to be the same computation.

    Raises:
        RuntimeError: it is not.
    """
    if not torch.allclose(found.detach(), wanted.detach(), rtol=2e-2, atol=2e-2):
        raise RuntimeError("it ran, and its result is wrong")
