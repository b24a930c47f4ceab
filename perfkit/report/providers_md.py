"""The tables of a kernel target: providers side by side, and what bounds each."""

from __future__ import annotations

from collections.abc import Sequence

from perfkit.report.markdown import HOLE, markdown_table
from perfkit.report.model import ProviderRow
from perfkit.report.words import hole_text, short_direction, time_cell, time_unit
from perfkit.stats import format_bytes, format_percent


def provider_table(rows: Sequence[ProviderRow]) -> str:
    """One line per case, direction, launch state, cache state and provider."""
    unit = time_unit([row.time for row in rows])
    columns = (
        *("case", "direction", "launch", "cache", "provider", "processes", f"time {unit}"),
        *("of peak bandwidth", "of peak FLOP/s", "peak memory", "remark"),
    )
    return markdown_table(columns, [_cells(row, unit=unit) for row in rows])


def provider_notes(rows: Sequence[ProviderRow]) -> list[str]:
    """Why a number is missing, and what the shares refer to."""
    notes = [
        f"{row.case} {row.direction} {row.launch} {row.provider}: {hole_text(row.fate, row.reason)}"
        for row in rows
        if row.time is None
    ]
    if any(row.bandwidth_share is not None for row in rows):
        notes.append(
            "of peak bandwidth: bytes that the pass must move, over its kernel time (its time where kernels "
            "were not counted) and over the bandwidth measured on this device for the same mix of reads and "
            "writes; above 100% means that a cache served it."
        )
    if any(row.time is not None and row.time.indicative for row in rows):
        notes.append("indicative: fewer than 3 processes.")
    return notes


def bottleneck_table(rows: Sequence[ProviderRow]) -> str:
    """The class of each row that has one, with its evidence; a class without evidence is left out."""
    cells = [
        (
            row.case,
            short_direction(row.direction),
            row.launch,
            row.cache,
            row.provider,
            row.bottleneck,
            "; ".join(row.evidence),
        )
        for row in rows
        if row.bottleneck and row.evidence
    ]
    columns = ("case", "direction", "launch", "cache", "provider", "class", "evidence")
    return markdown_table(columns, cells)


def _cells(row: ProviderRow, *, unit: str) -> tuple[str, ...]:
    remark = hole_text(row.fate, "") if row.time is None else "indicative" if row.time.indicative else ""
    return (
        row.case,
        short_direction(row.direction),
        row.launch,
        row.cache,
        row.provider,
        str(row.time.num_processes) if row.time else HOLE,
        time_cell(row.time, unit=unit),
        _share(row.bandwidth_share),
        _share(row.flops_share),
        HOLE if row.peak_memory_bytes is None else format_bytes(row.peak_memory_bytes),
        remark,
    )


def _share(value: float | None) -> str:
    return HOLE if value is None else format_percent(value)
