"""From trace events to kernels per step."""

from __future__ import annotations

from typing import Any

from perfkit_harness.kernels_seen import MARK, attention_kernels, device_uses, kernel_run, op_uses

from perfkit.wire.payloads import KernelRun


def _event(name: str, ts: float, dur: float, *, cat: str = "cpu_op", tid: int = 1) -> dict[str, Any]:
    return {"ph": "X", "cat": cat, "name": name, "ts": ts, "dur": dur, "tid": tid}


def _mark(ts: float, dur: float) -> dict[str, Any]:
    return _event(MARK, ts, dur, cat="user_annotation")


def _run(uses: list[tuple[str, float]], num_steps: int = 2) -> KernelRun:
    return kernel_run(uses, direction="full", cache="warm", num_steps=num_steps)


def test_kernels_copies_and_fills_count_and_annotations_do_not() -> None:
    events = [
        _event("gemm", 0, 5.0, cat="kernel"),
        _event("Memset (Device)", 6, 1.0, cat="gpu_memset"),
        _event("Memcpy DtoD", 8, 2.0, cat="gpu_memcpy"),
        _event("ProfilerStep#1", 0, 50.0, cat="gpu_user_annotation"),
        _event("cudaLaunchKernel", 0, 3.0, cat="cuda_runtime"),
        _event("aten::mm", 0, 9.0),
    ]
    assert device_uses(events) == [("gemm", 5.0), ("Memset (Device)", 1.0), ("Memcpy DtoD", 2.0)]


def test_outermost_ops_count_and_wrappers_are_looked_through() -> None:
    events = [
        _mark(0, 100),
        _event("aten::linear", 1, 10),
        _event("aten::addmm", 2, 8),
        _event("autograd::engine::evaluate_function: MmBackward0", 20, 30),
        _event("MmBackward0", 21, 28),
        _event("aten::mm", 22, 9),
        _event("aten::mm", 32, 9),
        _event("Torch-Compiled Region: 0/0", 60, 30),
        _event("## Call CompiledFxGraph abc ##", 62, 20),
        _event("aten::mm", 63, 5),
    ]
    assert op_uses(events) == [
        ("aten::linear", 10.0),
        ("aten::mm", 9.0),
        ("aten::mm", 9.0),
        ("## Call CompiledFxGraph abc ##", 20.0),
    ]


def test_ops_outside_the_counted_ranges_do_not_count() -> None:
    events = [_mark(0, 10), _event("aten::a", 1, 2), _event("aten::between", 12, 2), _mark(20, 10)]
    events += [_event("aten::b", 21, 3), _event("aten::b", 21, 4, tid=2)]
    assert op_uses(events, num_skipped=1) == [("aten::b", 3.0), ("aten::b", 4.0)]


def test_run_averages_over_steps_and_lists_the_largest_first() -> None:
    run = _run([("small", 1.0), ("large", 10.0), ("small", 3.0), ("large", 20.0), ("once", 4.0)])
    assert [(use.name, use.num_calls, use.time_us) for use in run.kernels] == [
        ("large", 1.0, 15.0),
        ("once", 0.5, 2.0),
        ("small", 1.0, 2.0),
    ]
    assert (run.time_us, run.num_kernels) == (19.0, 2.5)


def test_hash_depends_on_the_set_of_names_only() -> None:
    first = _run([("a", 1.0), ("b", 2.0)])
    assert first.names_sha256 == _run([("b", 9.0), ("a", 1.0), ("a", 1.0)]).names_sha256
    assert first.names_sha256 != _run([("a", 1.0), ("c", 2.0)]).names_sha256


def test_attention_is_found_by_name() -> None:
    fused = (
        "void pytorch_flash::flash_fwd_kernel<...>",
        "fmha_cutlassF_bf16_aligned_64x64_rf_sm80",
        "cudnn_generated_fort_native_sdpa_sm90_flash_fprop",
        "triton_tem_fused_flex_attention_0",
        "aten::_scaled_dot_product_flash_attention_for_cpu_backward",
    )
    runs = [_run([(name, 1.0) for name in (*fused, "sm90_xmma_gemm", "softmax_warp_forward")])]
    assert attention_kernels(runs) == tuple(sorted(fused))
