"""No more digits than the spread supports."""

from __future__ import annotations

import pytest

from perfkit.stats import format_bytes, format_percent, format_rate, format_ratio, format_us


@pytest.mark.parametrize(
    ("value_us", "spread_us", "text"),
    [
        (20041.7, 130.0, "20.04 ms"),
        (20041.7, 2000.0, "20.0 ms"),
        (20041.7, 5000.0, "20 ms"),
        (20041.7, 25000.0, "20 ms"),
        (20041.7, 36.0, "20.04 ms"),
        (20041.7, 360.0, "20.0 ms"),
        (20041.7, 960.0, "20.0 ms"),
        (20041.7, None, "20.0 ms"),
        (20041.7, 0.0, "20.04 ms"),
        (487.3, 1.2, "487.3 us"),
        (487.3, None, "487 us"),
        (1.234, None, "1.23 us"),
        (999.6, None, "1.00 ms"),
        (999600.0, None, "1.00 s"),
        (0.0, None, "0 us"),
    ],
)
def test_times(value_us: float, spread_us: float | None, text: str) -> None:
    assert format_us(value_us, spread_us=spread_us) == text


def test_times_in_a_column_share_the_unit_of_its_header() -> None:
    assert format_us(487.3, unit="ms", with_unit=False) == "0.487"
    assert format_us(20041.7, spread_us=130.0, unit="ms", with_unit=False) == "20.04"


@pytest.mark.parametrize(
    ("num_bytes", "text"),
    [(0, "0 B"), (512, "512 B"), (1536, "1.50 KiB"), (1.5 * 2**30, "1.50 GiB"), (150 * 2**30, "150 GiB")],
)
def test_bytes(num_bytes: float, text: str) -> None:
    assert format_bytes(num_bytes) == text


def test_bytes_in_a_stated_unit() -> None:
    assert format_bytes(2**29, unit="GiB", with_unit=False) == "0.500"


def test_rates_are_decimal() -> None:
    assert format_rate(4.21e12, unit="B/s") == "4.21 TB/s"
    assert format_rate(787e12, unit="FLOP/s") == "787 TFLOP/s"


@pytest.mark.parametrize(
    ("fraction", "spread", "signed", "text"),
    [
        (0.1234, None, False, "12.3%"),
        (-0.06, None, True, "-6.0%"),
        (0.004, None, True, "+0.4%"),
        (-0.0001, None, True, "0.0%"),
        (-0.06, 0.2, True, "-6%"),
        (-0.06, 0.002, True, "-6.0%"),
    ],
)
def test_percent(fraction: float, spread: float | None, signed: bool, text: str) -> None:
    assert format_percent(fraction, spread=spread, signed=signed) == text


def test_ratios() -> None:
    assert format_ratio(0.9231) == "0.923x"
    assert format_ratio(2.7412, spread=0.3) == "2.74x"
    assert format_ratio(2.7412, spread=0.4) == "2.7x"
    assert format_ratio(2.7412, spread=4.0) == "3x"
    assert format_ratio(0.7988, spread=0.0059) == "0.799x"
