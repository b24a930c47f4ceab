"""profile.md: where the time goes, per case, tree (or provider) and launch state."""

from __future__ import annotations

from collections.abc import Sequence

from perfkit.report.candidates_md import candidate_notes, candidate_table
from perfkit.report.kernels_md import family_sections, kernel_sections
from perfkit.report.markdown import HOLE, code, markdown_table
from perfkit.report.model import Closure, MatrixRow, Profile
from perfkit.report.providers_md import bottleneck_table, provider_notes, provider_table
from perfkit.report.render import render
from perfkit.report.words import QUICK, conditions_line, hole_text, short_direction, time_cell, time_unit
from perfkit.stats import format_bytes, format_percent, format_us

HOST_BOUND_RATIO = 1.2
"""A wall time a fifth above the sum of the kernels cannot come from the gaps of a GPU that is kept fed."""


def profile_md(profile: Profile) -> str:
    """The document; parts for which the profile has no rows are left out."""
    on_gpu = profile.conditions.on_gpu
    return render(
        "profile.md.j2",
        target=profile.conditions.target,
        conditions=conditions_line(profile.conditions),
        quick=QUICK if profile.conditions.quick else "",
        kernel_word="kernel" if on_gpu else "op",
        matrix=matrix_table(profile.matrix, on_gpu=on_gpu),
        matrix_notes=_matrix_notes(profile.matrix, on_gpu=on_gpu),
        attention=_attention_lines(profile.matrix),
        families=family_sections(profile.families),
        kernels=kernel_sections(profile.kernels),
        providers=provider_table(profile.providers),
        provider_notes=provider_notes(profile.providers),
        bottlenecks=bottleneck_table(profile.providers),
        closures=closure_table(profile.closures),
        closure_notes=[note for closure in profile.closures for note in closure.notes],
        candidates=candidate_table(profile.candidates),
        candidate_notes=candidate_notes(profile.candidates),
        peaks=markdown_table(("ceiling", "measured"), profile.peaks),
        notes=profile.notes,
    )


def is_host_bound(row: MatrixRow) -> bool:
    """Whether the GPU waits for the host: wall above 1.2 times the kernel time, outside a graph replay."""
    if row.launch != "launch" or row.wall is None or row.kernel is None:
        return False
    return row.wall.median > HOST_BOUND_RATIO * row.kernel.median


def matrix_table(rows: Sequence[MatrixRow], *, on_gpu: bool) -> str:
    """One line per case, tree and launch state; a hole says why there is no number."""
    unit = time_unit([row.wall for row in rows])
    kernel_word = "kernel" if on_gpu else "op"
    columns = (
        *("case", "tree", "direction", "launch", "cache", "processes", f"wall {unit}"),
        *(f"{kernel_word} {unit}", f"{kernel_word}s", "peak memory", "graphs", "cold compile s", "remark"),
    )
    return markdown_table(columns, [_matrix_cells(row, unit=unit, on_gpu=on_gpu) for row in rows])


def closure_table(closures: Sequence[Closure]) -> str:
    """attributed + unattributed = total, per case."""
    rows = [
        (
            c.case,
            format_us(c.total_us),
            format_us(c.attributed_us),
            format_us(c.unattributed_us),
            format_percent(c.unattributed_us / c.total_us) if c.total_us else HOLE,
        )
        for c in closures
    ]
    return markdown_table(("case", "total", "attributed", "unattributed", "share"), rows)


def _matrix_cells(row: MatrixRow, *, unit: str, on_gpu: bool) -> tuple[str, ...]:
    return (
        row.case,
        row.subject,
        short_direction(row.direction),
        row.launch,
        row.cache,
        str(row.wall.num_processes) if row.wall else HOLE,
        time_cell(row.wall, unit=unit),
        time_cell(row.kernel, unit=unit),
        HOLE if row.num_kernels is None else f"{row.num_kernels:g}",
        HOLE if row.peak_memory_bytes is None else format_bytes(row.peak_memory_bytes),
        HOLE if row.num_graphs is None else str(row.num_graphs),
        HOLE if row.cold_compile_s is None else f"{row.cold_compile_s:.1f}",
        _remark(row, on_gpu=on_gpu),
    )


def _remark(row: MatrixRow, *, on_gpu: bool) -> str:
    if row.wall is None:
        return hole_text(row.fate, "")
    remarks = []
    if on_gpu and is_host_bound(row):
        remarks.append("host-bound")
    if row.wall.indicative:
        remarks.append("indicative")
    return ", ".join(remarks)


def _matrix_notes(rows: Sequence[MatrixRow], *, on_gpu: bool) -> list[str]:
    notes = [
        f"{row.case} {row.subject} {row.launch}: {hole_text(row.fate, row.reason)}"
        for row in rows
        if row.wall is None
    ]
    if on_gpu and any(is_host_bound(row) for row in rows):
        notes.append(
            f"host-bound: wall above {HOST_BOUND_RATIO:g} times the kernel time, so the GPU waits for the "
            "host; cite such a wall time only beside its graph row."
        )
    if any(row.wall is not None and row.wall.indicative for row in rows):
        notes.append("indicative: fewer than 3 processes.")
    if not on_gpu and rows:
        notes.append("op time is the time inside top-level ops; on a CPU there are no kernels to count.")
    return notes


def _attention_lines(rows: Sequence[MatrixRow]) -> list[str]:
    """Which attention kernels ran, by name; only where a row names any."""
    users: dict[tuple[str, ...], list[str]] = {}
    for row in rows:
        if row.launch == "launch" and row.wall is not None:
            users.setdefault(row.attention_kernels, []).append(f"{row.case} {row.subject}")
    if not any(users):
        return []
    return [
        f"{', '.join(who)}: {', '.join(code(name) for name in names) or 'none found by name'}"
        for names, who in users.items()
    ]
