"""Every process as a dot: what differs between subjects, and what differs between equal processes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perfkit.report.model import Comparison, ComparisonRow
from perfkit.report.plot_style import BLACK, BLUE, GREY, ORANGE, draw, head
from perfkit.report.ranking import headline_rows, may_rank
from perfkit.report.words import conditions_line, direction_words, time_unit
from perfkit.stats import format_percent, format_us

_SCALES = {"us": 1.0, "ms": 1e3}
_COLORS = {"launch": BLUE, "graph": ORANGE}


def variants_png(comparison: Comparison) -> bytes | None:
    """A panel per case, a line per subject and launch state, a dot per process; None without numbers."""
    panels = _panels(comparison)
    if not panels:
        return None
    first = panels[0][1][0]
    title = (
        f"{comparison.conditions.target}: {first.kind} time, {direction_words(first.direction)}, "
        f"{first.cache} cache, one dot per fresh process"
    )
    heights = [0.55 + 0.25 * len(rows) for _, rows in panels]

    def paint(figure: Any) -> None:
        head(figure, title, f"{conditions_line(comparison.conditions)}; axes do not start at 0")
        axes = figure.subplots(len(panels), 1, squeeze=False, height_ratios=heights)
        for place, (case, rows) in enumerate(panels):
            _panel(axes[place][0], case, rows, baseline=comparison.baseline)
        _legend(figure, axes[0][0], [row for _, rows in panels for row in rows])

    return draw(paint, height_in=1.05 + sum(heights))


def _panels(comparison: Comparison) -> list[tuple[str, list[ComparisonRow]]]:
    """Per case the headline rows and the same rows as graph replays, launch first."""
    panels = []
    for base in headline_rows(comparison.rows):
        if base.subject != comparison.baseline:
            continue
        rows = [
            row
            for row in comparison.rows
            if (row.case, row.direction, row.cache, row.kind)
            == (base.case, base.direction, base.cache, base.kind)
            and row.time is not None
        ]
        if rows:
            panels.append((base.case, sorted(rows, key=lambda row: row.launch != "launch")))
    return panels


def _panel(axes: Any, case: str, rows: Sequence[ComparisonRow], *, baseline: str) -> None:
    unit = time_unit([row.time for row in rows])
    scale = _SCALES[unit]
    for place, row in enumerate(rows):
        assert row.time is not None
        color = _COLORS[row.launch] if may_rank(row) else GREY
        values = [value / scale for value in row.time.values]
        fill = color if may_rank(row) else "none"
        axes.scatter(
            values, [place] * len(values), s=26, facecolors=fill, edgecolors=color, alpha=0.8, zorder=3
        )
        middle = row.time.median / scale
        axes.plot([middle, middle], [place - 0.34, place + 0.34], color=BLACK, linewidth=1.6, zorder=4)
        axes.text(
            1.01,
            place,
            _number(row, rows, baseline),
            transform=axes.get_yaxis_transform(),
            va="center",
            fontsize=8,
        )
    _mark_baseline(axes, rows, baseline, scale)
    axes.set_yticks(range(len(rows)), [_label(row) for row in rows], fontsize=8.5)
    axes.set_ylim(len(rows) - 0.45, -0.55)
    axes.margins(x=0.06)
    axes.grid(True, axis="x")
    axes.set_title(f"{case} [{unit}]", loc="left")


def _mark_baseline(axes: Any, rows: Sequence[ComparisonRow], baseline: str, scale: float) -> None:
    """A dashed line at the baseline's median, behind everything."""
    for row in rows:
        if row.subject == baseline and row.launch == "launch" and row.time is not None:
            axes.axvline(row.time.median / scale, color=GREY, linestyle="--", linewidth=0.9, zorder=1)


def _number(row: ComparisonRow, rows: Sequence[ComparisonRow], baseline: str) -> str:
    """Median and its difference to the baseline in the same launch state."""
    assert row.time is not None
    text = format_us(row.time.median, spread_us=row.time.half_width, unit=time_unit([row.time]))
    base = next((r.time for r in rows if r.subject == baseline and r.launch == row.launch), None)
    if base is None or row.subject == baseline:
        return text
    return f"{text} ({format_percent(row.time.median / base.median - 1, signed=True)})"


def _label(row: ComparisonRow) -> str:
    verdict = "" if may_rank(row) else f" [{row.verdict}]"
    return f"{row.subject}, {row.launch}{verdict}"


def _legend(figure: Any, axes: Any, rows: Sequence[ComparisonRow]) -> None:
    """Only the kinds of marks that appear."""
    from matplotlib.lines import Line2D

    def dot(label: str, color: str, fill: str) -> Any:
        return Line2D(
            [], [], linestyle="", marker="o", markersize=5, color=color, markerfacecolor=fill, label=label
        )

    handles = [
        dot(launch, _COLORS[launch], _COLORS[launch]) for launch in dict.fromkeys(r.launch for r in rows)
    ]
    if not all(may_rank(row) for row in rows):
        handles.append(dot("not verified, not ranked", GREY, "none"))
    handles.append(Line2D([], [], color=BLACK, linewidth=1.6, label="median"))
    handles.append(Line2D([], [], color=GREY, linestyle="--", linewidth=0.9, label="baseline, launch"))
    figure.legend(handles=handles, loc="outside lower left", ncols=len(handles), fontsize=8)
