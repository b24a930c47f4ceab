"""Made-up but realistic measurements for the tests of reports; no number here was measured."""

from __future__ import annotations

import dataclasses
import random
from typing import Any

from perfkit.report.bottleneck import classify_bottleneck
from perfkit.report.model import (
    Candidate,
    Change,
    Closure,
    Comparison,
    ComparisonRow,
    Conditions,
    Correctness,
    Findings,
    KernelRow,
    MatrixRow,
    Piece,
    Profile,
    ProviderRow,
    Rejected,
)
from perfkit.stats import ProcessInterval, paired_ratio, process_interval

GPU = Conditions(
    target="llama3-block",
    kind="layer",
    device="cuda:0",
    device_name="NVIDIA H200",
    dtype="bf16",
    torch="2.13.0",
    triton="3.9.0",
    num_processes=3,
    fp32_precision="ieee",
    driver="570.1",
    date="2025-01-01",
)
CPU = dataclasses.replace(
    GPU,
    device="cpu",
    device_name="Made-up CPU",
    dtype="fp32",
    triton=None,
    driver="",
    num_threads=2,
)
KERNEL = dataclasses.replace(GPU, target="rms-norm", kind="kernel")

_WALLS_US = {
    ("4k", "eager"): 20040.0,
    ("4k", "regions"): 17210.0,
    ("4k", "block"): 16020.0,
    ("16k", "eager"): 79300.0,
    ("16k", "regions"): 68900.0,
    ("16k", "block"): 64400.0,
}
_KERNELS = {"eager": 401, "regions": 251, "block": 187}
_GRAPHS = {"eager": None, "regions": 5, "block": 2}
_COMPILE_S = {"eager": None, "regions": 21.4, "block": 34.1}
_FAMILIES = {"gemm": 0.62, "attention": 0.14, "elementwise": 0.17, "reduction": 0.05, "copy": 0.02}


def processes(middle_us: float, *, num: int = 3, spread: float = 0.004, seed: int = 0) -> ProcessInterval:
    """Numbers of `num` processes around a middle."""
    generator = random.Random(f"{middle_us}-{seed}")
    return process_interval([middle_us * (1 + generator.gauss(0, spread)) for _ in range(num)])


def matrix() -> tuple[MatrixRow, ...]:
    rows = []
    for (case, subject), wall_us in _WALLS_US.items():
        kernel_us = wall_us * (0.78 if (case, subject) == ("4k", "eager") else 0.985)
        common: dict[str, Any] = {
            "case": case,
            "subject": subject,
            "direction": "full",
            "cache": "warm",
            "num_kernels": _KERNELS[subject],
        }
        rows.append(
            MatrixRow(
                **common,
                launch="launch",
                wall=processes(wall_us),
                kernel=processes(kernel_us),
                peak_memory_bytes=int(wall_us * 1e6 / 4),
                num_graphs=_GRAPHS[subject],
                cold_compile_s=_COMPILE_S[subject],
                attention_kernels=("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16",),
            )
        )
        hole = (case, subject) == ("16k", "regions")
        rows.append(
            MatrixRow(
                **common,
                launch="graph",
                wall=None if hole else processes(wall_us * 0.96, seed=1),
                fate="not_capturable" if hole else "ok",
                reason="a replay with changed inputs gave other outputs" if hole else "",
            )
        )
    return tuple(rows)


def kernel_rows() -> tuple[tuple[KernelRow, ...], tuple[KernelRow, ...]]:
    families, kernels = [], []
    for case in ("4k",):
        for subject in ("eager", "block"):
            total = _WALLS_US[(case, subject)]
            for family, share in _FAMILIES.items():
                if (subject, family) == ("block", "copy"):
                    continue
                families.append(
                    KernelRow(
                        case=case,
                        subject=subject,
                        name=family,
                        family=family,
                        time_us=total * share,
                        num_calls=round(_KERNELS[subject] * share),
                        share=share,
                    )
                )
            for index in range(13):
                share = 0.3 / 2**index
                kernels.append(
                    KernelRow(
                        case=case,
                        subject=subject,
                        name=f"void at::native::vectorized_elementwise_kernel<4, at::native::Op{index}<float>"
                        ", std::array<char*, 3ul> >(int, at::native::CUDAFunctor, std::array<char*, 3ul>)",
                        family="elementwise",
                        time_us=total * share,
                        num_calls=14,
                        share=share,
                    )
                )
    return tuple(families), tuple(kernels)


def pieces(case: str = "4k", *, scale: float = 1.0) -> tuple[Piece, ...]:
    """37 islands of glue and 30 cut ops."""
    found = []
    for index in range(37):
        phase = "forward" if index < 17 else "backward"
        heavy = index % 9 == 3
        floor_us = 75.0 if heavy else 4.0 + 2.3 * (index % 11)
        found.append(
            Piece(
                case=case,
                name=f"island {index}",
                phase=phase,
                kind="glue",
                measured_us=scale * floor_us * (4.2 if heavy else 2.4 + 0.2 * (index % 5)),
                floor_us=scale * floor_us,
                unfused_floor_us=scale * floor_us * 2.6,
                num_ops=4 + index % 7,
                ops="mul, add, pow, mean, rsqrt, mul",
                modules=(f"layers.{index % 2}.attention_norm",),
                sources=(
                    f"llama3_block.py:{30 + index} {'RMSNorm.forward' if heavy else 'apply_rope'}",
                    "llama3_block.py:88 Block.forward",
                ),
            )
        )
    for index in range(30):
        attention = index % 10 == 4
        floor_us = scale * (1350.0 if attention else 420.0)
        found.append(
            Piece(
                case=case,
                name=f"{'attention' if attention else 'gemm'} {index}",
                phase="forward" if index < 10 else "backward",
                kind="attention" if attention else "gemm",
                measured_us=floor_us * 1.13,
                floor_us=floor_us,
                unfused_floor_us=floor_us,
                num_ops=1,
                ops="mm",
                modules=(f"layers.{index % 2}.feed_forward.w{1 + index % 3}",),
            )
        )
    return tuple(found)


def candidates(of: tuple[Piece, ...]) -> tuple[Candidate, ...]:
    total = sum(p.measured_us for p in of)
    ordered = sorted(of, key=lambda p: -(p.gain_us or 0.0))
    return tuple(
        Candidate(
            rank=rank,
            piece=piece,
            gain_us=piece.gain_us or 0.0,
            share=(piece.gain_us or 0.0) / total,
            worthwhile=(piece.gain_us or 0.0) / total >= 0.01,
            advice="fuse add and norm" if "RMSNorm" in piece.where else "",
        )
        for rank, piece in enumerate(ordered, start=1)
    )


def closures(of: tuple[Piece, ...]) -> tuple[Closure, ...]:
    found = []
    for case in dict.fromkeys(p.case for p in of):
        attributed_us = sum(p.measured_us for p in of if p.case == case)
        found.append(Closure(case=case, total_us=attributed_us + 3.1, attributed_us=attributed_us))
    return tuple(found)


def profile() -> Profile:
    families, kernels = kernel_rows()
    all_pieces = pieces()
    return Profile(
        conditions=GPU,
        matrix=matrix(),
        families=families,
        kernels=kernels,
        closures=closures(all_pieces),
        candidates=candidates(all_pieces),
        peaks=(("read", "4.21 TB/s (spread 0.3%)"), ("gemm_bf16", "787 TFLOP/s (spread 0.9%)")),
        notes=("2 of 12 slots ran twice: contaminated by pid 4242.",),
    )


def comparison_row(
    case: str, subject: str, wall_us: float, base_us: float | None, *, num: int = 3, **changes: Any
) -> ComparisonRow:
    """A row whose processes pair with those of its baseline by round."""
    time = processes(wall_us, num=num)
    ratio = None
    if base_us is not None:
        base = processes(base_us, num=num)
        ratio = paired_ratio(dict(enumerate(base.values)), dict(enumerate(time.values)))
    row = ComparisonRow(
        case=case,
        subject=subject,
        direction="full",
        launch="launch",
        cache="warm",
        kind="wall",
        time=time,
        ratio=ratio,
        verdict="PASS" if base_us is not None else "reference",
        fates={"ok": num},
    )
    return dataclasses.replace(row, **changes)


def comparison(*, num: int = 3, regions_verdict: str = "FAIL") -> Comparison:
    rows = []
    for (case, subject), wall_us in _WALLS_US.items():
        base_us = None if subject == "eager" else _WALLS_US[(case, "eager")]
        changes: dict[str, Any] = {}
        if subject == "regions":
            reason = "grad:layers.0.wq.weight is 3.1 times further from fp64 than eager"
            changes = {
                "verdict": regions_verdict,
                "verdict_reason": reason if regions_verdict == "FAIL" else "",
            }
        if (case, subject) == ("4k", "block"):
            changes["fates"] = {"contaminated": 1, "ok": num}
        rows.append(comparison_row(case, subject, wall_us, base_us, num=num, **changes))
        graph = comparison_row(
            case, subject, wall_us * 0.96, None if base_us is None else base_us * 0.96, num=num, **changes
        )
        if (case, subject) == ("16k", "regions"):
            graph = dataclasses.replace(graph, time=None, ratio=None, fates={"not_capturable": num})
        rows.append(dataclasses.replace(graph, launch="graph"))
    return Comparison(conditions=GPU, baseline="eager", rows=tuple(rows))


def findings(**changes: Any) -> Findings:
    all_pieces = (*pieces(), *pieces("16k", scale=3.9))
    made = Findings(
        conditions=GPU,
        comparison=comparison(),
        changes=(
            Change(subject="regions", kind="tree", names=("apply_rope", "RMSNorm.forward")),
            Change(subject="block", kind="tree", names=("Block",)),
        ),
        matrix=matrix(),
        pieces=all_pieces,
        candidates=(*candidates(pieces()), *candidates(pieces("16k", scale=3.9))),
        closures=closures(all_pieces),
        correctness=(
            Correctness(
                subject="block",
                verdict="PASS",
                dtype="bf16",
                num_outputs=1,
                num_gradients=19,
                worst_tensor="grad:layers.0.wq.weight",
                rel_l2_target=3.1e-3,
                rel_l2_reference=3.3e-3,
            ),
        ),
        rejected=(
            Rejected(idea="selective checkpointing", number="", why="the step fits into memory as it is"),
        ),
        compile_limits=("complex RoPE is not fused: 114 us a piece, view_as_real instead",),
        not_tested=("dtypes other than bf16",),
        feedback=("no pattern for complex RoPE",),
        test_command="perfkit bench llama3-block --replicates 3\nperfkit verify llama3-block",
    )
    return dataclasses.replace(made, **changes)


def provider_rows() -> tuple[ProviderRow, ...]:
    rows = []
    speeds = {"eager": 0.31, "compile": 0.84, "target": 0.88, "liger": 0.79}
    for case, num_bytes in (
        ("2048x4096", 50e6),
        ("16384x4096", 400e6),
        ("16384x8192", 800e6),
        ("65536x128", 50e6),
    ):
        for direction, factor in (("forward", 0.4), ("backward", 0.6), ("full", 1.0)):
            for provider, speed in speeds.items():
                share = speed * (0.6 if case == "65536x128" else 1.0)
                time_us = num_bytes * factor / (share * 4.2e12) * 1e6
                bottleneck = classify_bottleneck(
                    time_us=time_us, bandwidth_share=share, flops_share=None, launch_floor_us=2.1
                )
                assert bottleneck is not None
                missing = provider == "liger" and case == "65536x128"
                rows.append(
                    ProviderRow(
                        case=case,
                        provider=provider,
                        direction=direction,  # type: ignore[arg-type]
                        launch="launch",
                        cache="cold",
                        time=None if missing else processes(time_us),
                        num_bytes=int(num_bytes * factor),
                        bandwidth_share=None if missing else share,
                        bottleneck="" if missing else bottleneck.name,
                        evidence=() if missing else bottleneck.evidence,
                        fate="failed" if missing else "ok",
                        reason="liger-kernel is not installed" if missing else "",
                    )
                )
    return tuple(rows)


def kernel_findings(**changes: Any) -> Findings:
    rows = []
    times = {r.case: {} for r in provider_rows()}  # type: dict[str, dict[str, float]]
    for row in provider_rows():
        if row.direction == "full" and row.time:
            times[row.case][row.provider] = row.time.median
    for case, by_provider in times.items():
        for provider, time_us in by_provider.items():
            base_us = None if provider == "eager" else by_provider["eager"]
            rows.append(comparison_row(case, provider, time_us, base_us, cache="cold"))
    made = Findings(
        conditions=KERNEL,
        comparison=Comparison(conditions=KERNEL, baseline="eager", rows=tuple(rows)),
        changes=tuple(Change(subject=p, kind="provider", names=(p,)) for p in ("target", "compile")),
        providers=provider_rows(),
        test_command="perfkit bench rms-norm --replicates 3",
    )
    return dataclasses.replace(made, **changes)


def variant_findings() -> Findings:
    """A kernel variant laid over the recipe's source, against v0 of the same kernel."""
    rows = []
    for case, before_us, after_us in (("16384x4096", 108.6, 97.2), ("16384x8192", 215.7, 191.3)):
        rows.append(comparison_row(case, "target", before_us, None, cache="cold"))
        rows.append(comparison_row(case, "v1/target", after_us, before_us, cache="cold"))
    return Findings(
        conditions=KERNEL,
        comparison=Comparison(conditions=KERNEL, baseline="target", rows=tuple(rows)),
        changes=(
            Change(
                subject="v1/target",
                kind="variant",
                names=("rms_norm_triton.py",),
                idea="Several short rows per program keep all lanes busy. More text follows.",
                predicted="-10% at 16384x4096",
            ),
        ),
        correctness=(
            Correctness(subject="v1/target", verdict="PASS", dtype="bf16", num_outputs=1, num_gradients=2),
        ),
    )
