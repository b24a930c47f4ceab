"""The checks that rest on what a child process found with torch."""

from __future__ import annotations

from perfkit.machine.finding import Check, CheckFunction
from perfkit.machine.state import MachineState

_EXACT_PRECISIONS = {"ieee", "highest", "none", ""}
"""What torch calls an fp32 matmul that stays fp32; `none` means that nothing was set."""


def check_torch(state: MachineState) -> Check:
    """Whether torch works in a fresh process, and reaches the device."""
    version = state.versions.torch
    facts = state.torch_facts
    if not version or facts is None:
        return Check(
            name="torch",
            state="bad",
            found="not installed" if not version else f"{version} does not run: {state.torch_error}",
            do="Install torch 2.11 or newer for this Python, then run perfkit doctor again.",
        )
    if state.device != "cpu" and not facts.cuda_works:
        return Check(
            name="torch",
            state="bad",
            found=f"{version} cannot use {state.device}: {facts.cuda_error or 'no CUDA device'}",
            do="Install a CUDA build of torch that fits the driver, or measure with --device cpu.",
        )
    where = f"works on {state.device}"
    return Check(name="torch", state="good", found=f"{version} {where}")


def check_triton(state: MachineState) -> Check | None:
    """Whether triton is the one that torch was built against, and whether it runs."""
    versions, facts = state.versions, state.torch_facts
    if facts is None or not versions.torch:
        return None
    on_gpu = state.device != "cpu"
    if versions.triton and versions.triton_wanted and versions.triton != versions.triton_wanted:
        return Check(
            name="triton",
            state="bad",
            found=f"{versions.triton}, but torch {versions.torch} pins {versions.triton_wanted}",
            do=f"pip install triton=={versions.triton_wanted}",
        )
    if facts.triton_works:
        return Check(name="triton", state="good", found=f"{versions.triton or 'unknown version'} works")
    return Check(
        name="triton",
        state="bad" if on_gpu else "warn",
        found=f"{versions.triton or 'not installed'}: {facts.triton_error or 'does not run'}",
        do="Install the triton that torch pins; without it, Triton kernels and compiled trees cannot run."
        if on_gpu
        else "Triton kernels run only in the interpreter here, for correctness, and are not timed.",
    )


def check_compiler(state: MachineState) -> Check | None:
    """The C compiler that Inductor and Triton call."""
    if state.torch_facts is None:
        return None
    if state.torch_facts.compiler:
        return Check(name="C compiler", state="good", found=state.torch_facts.compiler)
    return Check(
        name="C compiler",
        state="bad",
        found="none",
        do="Install gcc or clang (apt-get install gcc), or point CC at one: torch.compile needs it.",
    )


def check_compile(state: MachineState) -> Check | None:
    """torch.compile on a small function."""
    facts = state.torch_facts
    if facts is None:
        return None
    if facts.compile_works:
        return Check(name="torch.compile", state="good", found="works")
    return Check(
        name="torch.compile",
        state="bad",
        found=facts.compile_error or "does not work",
        do="Until this is mended, only the eager tree can be measured (--trees eager).",
    )


def check_precision(state: MachineState) -> Check | None:
    """fp32 matmul precision that a plain run on this machine would use."""
    if state.torch_facts is None:
        return None
    precision = state.torch_facts.default_fp32_precision
    if precision.lower() in _EXACT_PRECISIONS:
        return Check(name="fp32 matmuls", state="good", found=f"{precision or 'default'}: full fp32")
    return Check(
        name="fp32 matmuls",
        state="warn",
        found=f"{precision}: fp32 inputs are rounded before they are multiplied",
        do="perfkit measures in full fp32 unless told otherwise; state the same in your own runs.",
    )


def check_attention(state: MachineState) -> Check | None:
    """Which attention backends ran a small problem."""
    facts = state.torch_facts
    if facts is None:
        return None
    fused = [name for name in facts.attention_backends if "math" not in name.lower()]
    found = ", ".join(facts.attention_backends) or "none ran"
    if fused:
        return Check(name="attention", state="good", found=found)
    return Check(
        name="attention",
        state="warn",
        found=f"{found}: no fused backend",
        do="Attention writes its full score matrix here; expect it to dominate, and trust no such number.",
    )


TORCH_CHECKS: tuple[CheckFunction, ...] = (
    check_torch,
    check_triton,
    check_compiler,
    check_compile,
    check_precision,
    check_attention,
)
