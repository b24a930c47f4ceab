"""How every plot looks, and how it becomes a small PNG without a display."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

DPI = 144
WIDTH_IN = 9.0
_LARGEST_BYTES = 150_000

# Okabe and Ito (2008): distinguishable with any kind of colour vision.
BLUE, ORANGE, GREEN, VERMILION, PURPLE, SKY, BLACK = (
    *("#0072b2", "#e69f00", "#009e73", "#d55e00", "#cc79a7", "#56b4e9", "#222222"),
)
SERIES = (BLUE, ORANGE, GREEN, PURPLE, SKY, VERMILION)
GREY = "#8c8c8c"
LIGHT = "#d9d9d9"

_STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": False,
    "grid.color": "#e6e6e6",
    "legend.frameon": False,
}


def draw(paint: Callable[[Any], None], *, height_in: float) -> bytes:
    """The PNG of a figure that `paint` fills; the same data gives the same bytes.

    No pyplot: a figure of its own neither needs a display nor is kept alive by global state.
    """
    import matplotlib
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    with matplotlib.rc_context(_STYLE):
        figure = Figure(figsize=(WIDTH_IN, height_in), dpi=DPI, layout="constrained")
        FigureCanvasAgg(figure)
        paint(figure)
        buffer = io.BytesIO()
        figure.savefig(buffer, format="png", metadata={"Software": None})
    return _small(buffer.getvalue())


def head(figure: Any, title: str, conditions: str) -> None:
    """Title and, below it, the conditions that belong to every number of the plot."""
    import textwrap

    lines = textwrap.wrap(conditions, width=150)
    figure.suptitle(
        title,
        x=0.01,
        y=1.0 - 0.08 / figure.get_figheight(),
        ha="left",
        va="top",
        fontsize=11,
        fontweight="bold",
    )
    figure.get_layout_engine().set(rect=(0.0, 0.0, 1.0, 1.0 - _head_share(figure, len(lines))))
    figure.text(
        0.01,
        1.0 - 0.35 / figure.get_figheight(),
        "\n".join(lines),
        ha="left",
        va="top",
        fontsize=7.5,
        color="#555555",
    )


def _head_share(figure: Any, num_lines: int) -> float:
    """Share of the height that title and conditions take: constrained layout knows neither."""
    return float((0.46 + 0.135 * num_lines) / figure.get_figheight())


def _small(png: bytes) -> bytes:
    """The same picture with at most 128 colours where it is too large as it is."""
    if len(png) <= _LARGEST_BYTES:
        return png
    from PIL import Image

    buffer = io.BytesIO()
    Image.open(io.BytesIO(png)).convert("RGB").quantize(colors=128).save(buffer, format="PNG", optimize=True)
    return buffer.getvalue()
