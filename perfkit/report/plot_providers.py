"""Kernel targets: how much of the measured bandwidth (or how much time) each provider takes, per case."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from perfkit.report.model import Conditions, ProviderRow
from perfkit.report.plot_style import GREY, SERIES, draw, head
from perfkit.report.words import conditions_line, direction_words

_DIRECTIONS = ("forward", "backward", "full")
_GROUP_WIDTH = 0.84
_LABEL_ROOM = 80
"""Characters of case names that fit below the widest axis."""


def providers_png(rows: Sequence[ProviderRow], *, conditions: Conditions) -> bytes | None:
    """A panel per direction, a group of bars per case; None where no row has a number.

    Bars show the share of the measured bandwidth where every measured row has one, else the time on a
    logarithmic axis. Of several cache states the first is shown, as launched.
    """
    chosen = _chosen(rows)
    measured = [row for row in chosen if row.time is not None]
    if not measured:
        return None
    shares = all(row.bandwidth_share is not None for row in measured)
    directions = [d for d in _DIRECTIONS if any(row.direction == d for row in chosen)]
    what = "share of the measured bandwidth" if shares else "time"
    title = f"{conditions.target}: {what}, {measured[0].launch}, {measured[0].cache} cache"

    def paint(figure: Any) -> None:
        head(figure, title, conditions_line(conditions))
        axes = figure.subplots(len(directions), 1, squeeze=False, sharex=True, sharey=True)
        for place, direction in enumerate(directions):
            _panel(axes[place][0], [r for r in chosen if r.direction == direction], chosen, shares=shares)
            axes[place][0].set_title(direction_words(direction), loc="left")
        handles, labels = axes[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower left", ncols=min(len(labels), 6), fontsize=8)

    return draw(paint, height_in=1.2 + 1.75 * len(directions))


def _chosen(rows: Sequence[ProviderRow]) -> list[ProviderRow]:
    launched = [row for row in rows if row.launch == "launch"] or list(rows)
    caches = {row.cache for row in launched}
    cache = "cold" if "cold" in caches else "warm"
    return [row for row in launched if row.cache == cache]


def _panel(
    axes: Any, rows: Sequence[ProviderRow], everything: Sequence[ProviderRow], *, shares: bool
) -> None:
    """One direction; cases and providers take the places that they have in all panels."""
    cases = list(dict.fromkeys(row.case for row in everything))
    providers = list(dict.fromkeys(row.provider for row in everything))
    width = _GROUP_WIDTH / len(providers)
    for index, provider in enumerate(providers):
        of_provider = {row.case: row for row in rows if row.provider == provider}
        offset = (index + 0.5) * width - _GROUP_WIDTH / 2
        color = SERIES[index % len(SERIES)]
        heights = [_height(of_provider.get(case), shares=shares) for case in cases]
        places = [place + offset for place in range(len(cases))]
        axes.bar(places, [h or 0.0 for h in heights], width * 0.92, color=color, label=provider)
        for place, height in zip(places, heights, strict=True):
            _number(axes, place, height, shares=shares, small=width < 0.12)
    crowded = sum(len(case) for case in cases) > _LABEL_ROOM
    turn = {"rotation": 20, "ha": "right"} if crowded else {}
    axes.set_xticks(range(len(cases)), cases, **turn)
    axes.tick_params(axis="x", length=0)
    axes.grid(True, axis="y")
    if shares:
        axes.axhline(100, color=GREY, linestyle="--", linewidth=0.9, zorder=1)
        axes.set_ylabel("% of peak")
        axes.set_ylim(0, max(115.0, *(1.15 * (_height(r, shares=True) or 0.0) for r in everything)))
    else:
        axes.set_yscale("log")
        axes.set_ylabel("time [us]")
        axes.margins(y=0.2)


def _height(row: ProviderRow | None, *, shares: bool) -> float | None:
    if row is None or row.time is None:
        return None
    if shares:
        return None if row.bandwidth_share is None else 100 * row.bandwidth_share
    return row.time.median


def _number(axes: Any, place: float, height: float | None, *, shares: bool, small: bool) -> None:
    """The value above its bar, or a mark where there is no number."""
    size = 6.5 if small else 7.5
    if height is None:
        axes.annotate(
            "none", (place, 0), xycoords=("data", "axes fraction"), xytext=(0, 3), textcoords="offset points",
            ha="center", rotation=90, fontsize=size, color=GREY,
        )  # fmt: skip
        return
    text = f"{height:.0f}" if shares or height >= 100 else f"{height:.3g}"
    axes.annotate(
        text, (place, height), xytext=(0, 2), textcoords="offset points", ha="center", fontsize=size
    )
