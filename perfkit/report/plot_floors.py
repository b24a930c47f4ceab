"""Measured time against the floor, island by island."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

from perfkit.report.markdown import shortened
from perfkit.report.model import Conditions, Piece
from perfkit.report.plot_style import BLUE, GREEN, LIGHT, VERMILION, draw, head
from perfkit.report.words import conditions_line, plural
from perfkit.stats import format_us

NUM_TOP = 24
_LONGEST_LABEL = 46
_PHASES = {"forward": "fwd", "backward": "bwd", "recompute": "rec"}


def floors_png(
    pieces: Sequence[Piece], *, conditions: Conditions, case: str, num_top: int = NUM_TOP
) -> bytes | None:
    """One bar per glue island of the case, longest first, with both floors; None without any that took time.

    What does not fit is summed into one last bar, so that the bars together are all the glue there is.
    """
    glue = [p for p in pieces if p.case == case and p.kind == "glue"]
    if not any(p.measured_us > 0 for p in glue):
        return None
    shown = _shown(glue, num_top)
    total, floor = sum(p.measured_us for p in glue), sum(p.floor_us or 0.0 for p in glue)
    title = (
        f"{conditions.target}, {case}: {plural(len(glue), 'island')} of glue, "
        f"{format_us(total)} measured against a floor of {format_us(floor)}"
    )

    def paint(figure: Any) -> None:
        head(figure, title, f"{conditions_line(conditions)}; eager tree, time per step")
        axes = figure.subplots()
        _bars(axes, shown)
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower left", ncols=3, fontsize=8)

    return draw(paint, height_in=1.75 + 0.235 * len(shown))


def _shown(glue: Sequence[Piece], num_top: int) -> list[Piece]:
    ordered = sorted(glue, key=lambda p: (-p.measured_us, p.name))
    if len(ordered) <= num_top + 1:
        return ordered
    rest = ordered[num_top:]
    merged = dataclasses.replace(
        rest[0],
        name="",
        sources=(f"rest: {len(rest)} islands",),
        phase="",
        measured_us=sum(p.measured_us for p in rest),
        floor_us=_sum([p.floor_us for p in rest]),
        unfused_floor_us=_sum([p.unfused_floor_us for p in rest]),
    )
    return [*ordered[:num_top], merged]


def _sum(values: Sequence[float | None]) -> float | None:
    known = [v for v in values if v is not None]
    return sum(known) if len(known) == len(values) else None


def _bars(axes: Any, shown: Sequence[Piece]) -> None:
    places = range(len(shown))
    islands = [p for p in shown if p.name]
    unit, scale = ("ms", 1e3) if islands[0].measured_us >= 2e3 else ("us", 1.0)
    # A long rest must not squeeze the islands that the plot is about: its bar is cut, and says so.
    limit = 1.4 * max(_end(p) for p in islands) / scale
    colors = [BLUE if p.name else LIGHT for p in shown]
    measured = [min(p.measured_us / scale, limit * 0.8) for p in shown]
    axes.barh(places, measured, height=0.72, color=colors, label="measured")
    _markers(axes, shown, scale, limit=limit * 0.8)
    for place, piece in zip(places, shown, strict=True):
        cut = piece.measured_us / scale > limit * 0.8
        end = min(_end(piece) / scale, limit * 0.8) + limit * 0.012
        axes.text(end, place, _value(piece) + (", bar cut" if cut else ""), va="center", fontsize=7.5)
    axes.set_yticks(list(places), [_label(p) for p in shown], fontsize=8)
    axes.set_ylim(len(shown) - 0.4, -0.6)
    axes.set_xlim(0, limit)
    axes.grid(True, axis="x")
    axes.set_xlabel(f"time per step [{unit}]; in brackets: measured / floor")


def _end(piece: Piece) -> float:
    """Where the bar and its markers end."""
    return max(piece.measured_us, piece.unfused_floor_us or 0.0)


def _markers(axes: Any, shown: Sequence[Piece], scale: float, *, limit: float) -> None:
    for label, color, marker, values in (
        ("floor (each input once, each output once)", GREEN, "|", [p.floor_us for p in shown]),
        ("unfused floor (each op alone)", VERMILION, "d", [p.unfused_floor_us for p in shown]),
    ):
        placed = [(value / scale, place) for place, value in enumerate(values) if value is not None]
        known = [(value, place) for value, place in placed if value <= limit]
        if known:
            size, width = (110, 2.6) if marker == "|" else (16, 0.5)
            axes.scatter(
                *zip(*known, strict=True),
                marker=marker,
                s=size,
                color=color,
                linewidths=width,
                edgecolors=None if marker == "|" else "white",
                label=label,
                zorder=3,
            )


def _value(piece: Piece) -> str:
    text = format_us(piece.measured_us)
    return f"{text} ({piece.measured_us / piece.floor_us:.1f}x)" if piece.floor_us else text


def _label(piece: Piece) -> str:
    if not piece.name:
        return piece.where
    phase = _PHASES.get(piece.phase, piece.phase)
    number = piece.name.rpartition(" ")[2]
    # Names such as `b33` carry their phase already.
    tag = f"{phase} {number}" if number.isdecimal() else number
    return f"{shortened(piece.where, most=_LONGEST_LABEL)}  {tag}"
