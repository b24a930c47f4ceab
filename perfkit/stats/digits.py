"""Numbers as text, with no more digits than their spread supports.

The rule for digits is the rounding rule of the Particle Data Group (Review of Particle Physics,
introduction, section on rounding): a spread whose leading digits lie in 100..354 supports two of its
digits, one in 355..949 a single digit, and one in 950..999 counts as 1000. On top of that, never more
than four significant digits are printed, and a number without a known spread gets three. So 20041.7 us
with an interval of +/- 130 us is `20.04 ms`, and with +/- 5 ms it is `20 ms`.
"""

from __future__ import annotations

import math

_MAX_DIGITS = 4
_DEFAULT_DIGITS = 3
_US_PER = {"us": 1.0, "ms": 1e3, "s": 1e6}
_BINARY = ("B", "KiB", "MiB", "GiB", "TiB")
_DECIMAL = ("", "K", "M", "G", "T", "P")


def format_us(
    value_us: float, *, spread_us: float | None = None, unit: str = "", with_unit: bool = True
) -> str:
    """A time: `487 us`, `20.04 ms`, `1.50 s`.

    Args:
        spread_us: half the width of its interval, in the same unit as the value.
        unit: `us`, `ms` or `s`; by default the one that leaves 1 to 999 before the point.
        with_unit: False for table cells whose header names the unit.
    """
    chosen = unit or _time_unit(value_us)
    scale = _US_PER[chosen]
    text = _rounded(value_us / scale, None if spread_us is None else spread_us / scale)
    return f"{text} {chosen}" if with_unit else text


def format_bytes(num_bytes: float, *, unit: str = "", with_unit: bool = True) -> str:
    """An amount of memory in binary units: `512 B`, `1.50 GiB`."""
    power = _BINARY.index(unit) if unit else _power(abs(num_bytes), base=1024, limit=len(_BINARY) - 1)
    value = num_bytes / 1024**power
    text = f"{value:.0f}" if power == 0 else _rounded(value, None)
    return f"{text} {_BINARY[power]}" if with_unit else text


def format_rate(per_second: float, *, unit: str) -> str:
    """A rate in decimal units, as vendors state it: `4.21 TB/s` for unit `B/s`, `787 TFLOP/s`."""
    power = _power(abs(per_second), base=1000, limit=len(_DECIMAL) - 1)
    return f"{_rounded(per_second / 1000**power, None)} {_DECIMAL[power]}{unit}"


def format_percent(fraction: float, *, spread: float | None = None, signed: bool = False) -> str:
    """A fraction as percent with at most one decimal: 0.1234 -> `12.3%`; signed: `-6.0%`, `+0.4%`.

    Args:
        spread: half the width of the fraction's interval, as a fraction: ten percent points or
            more leave no decimal.
    """
    decimals = 1 if spread is None else _decimals(fraction * 100, spread * 100, most=1)
    text = f"{fraction * 100:{'+' if signed else ''}.{decimals}f}"
    if float(text) == 0:
        text = text.replace("-", "").replace("+", "")
    return f"{text}%"


def format_ratio(ratio: float, *, spread: float | None = None) -> str:
    """A ratio: `0.923x`, `2.74x`; fewer digits where the spread is wide."""
    return f"{_rounded(ratio, spread)}x"


def _rounded(value: float, spread: float | None) -> str:
    return f"{value:.{_decimals(value, spread, most=None)}f}"


def _decimals(value: float, spread: float | None, *, most: int | None) -> int:
    """Digits after the point: limited by the spread and by the significant digits."""
    if value == 0 or not math.isfinite(value):
        return 0
    digits = _DEFAULT_DIGITS if spread is None else _MAX_DIGITS
    # The exponent after rounding: 0.9996 prints as 1.00, not as 1.000.
    leading = int(f"{value:.{digits - 1}e}".partition("e")[2])
    allowed = digits - 1 - leading
    if spread is not None and spread > 0 and math.isfinite(spread):
        allowed = min(allowed, _supported_decimals(spread))
    return max(0, allowed if most is None else min(allowed, most))


def _supported_decimals(spread: float) -> int:
    """Decimals that a spread supports; negative where not even the units digit is known."""
    digits, exponent = f"{spread:.2e}".split("e")
    leading = round(float(digits) * 100)
    if leading >= 950:
        return -int(exponent)
    return -int(exponent) + (1 if leading <= 354 else 0)


def _time_unit(value_us: float) -> str:
    size = abs(value_us)
    if size >= 999.5e3:
        return "s"
    return "ms" if size >= 999.5 else "us"


def _power(size: float, *, base: int, limit: int) -> int:
    power = 0
    while size >= base - 0.5 and power < limit:
        size /= base
        power += 1
    return power
