"""Plots are small PNG files, equal for equal data, and absent where nothing was measured."""

from __future__ import annotations

import dataclasses
import io

import pytest
from PIL import Image

from perfkit.report.model import Comparison
from perfkit.report.plots import floors_png, providers_png, variants_png
from tests.support import report_data as data

MOST_BYTES = 150_000


def opened(png: bytes | None) -> Image.Image:
    assert png is not None
    assert len(png) < MOST_BYTES
    return Image.open(io.BytesIO(png))


def test_floors_of_forty_and_of_hundreds_of_islands_have_the_same_height() -> None:
    few = opened(floors_png(data.pieces(), conditions=data.GPU, case="4k"))
    many = tuple(dataclasses.replace(p, name=f"island {i}") for i, p in enumerate(data.pieces() * 6))
    assert opened(floors_png(many, conditions=data.GPU, case="4k")).size == few.size


def test_equal_data_gives_equal_bytes() -> None:
    assert variants_png(data.comparison()) == variants_png(data.comparison())


def test_floors_of_islands_without_any_floor() -> None:
    pieces = tuple(dataclasses.replace(p, floor_us=None, unfused_floor_us=None) for p in data.pieces())
    opened(floors_png(pieces, conditions=data.GPU, case="4k"))


def test_variants_with_one_process_and_with_failures() -> None:
    assert opened(variants_png(data.comparison(num=1))).width == opened(variants_png(data.comparison())).width


@pytest.mark.parametrize("shares", [True, False])
def test_providers_by_share_or_by_time(shares: bool) -> None:
    rows = data.provider_rows()
    if not shares:
        rows = tuple(dataclasses.replace(row, bandwidth_share=None) for row in rows)
    opened(providers_png(rows, conditions=data.KERNEL))


def test_nothing_measured_makes_no_plot() -> None:
    assert floors_png((), conditions=data.GPU, case="4k") is None
    assert floors_png(data.pieces(), conditions=data.GPU, case="other") is None
    assert variants_png(Comparison(conditions=data.GPU, baseline="eager", rows=())) is None
    holes = tuple(dataclasses.replace(row, time=None) for row in data.provider_rows())
    assert providers_png(holes, conditions=data.KERNEL) is None
