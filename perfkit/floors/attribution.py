"""Measured time of each piece, and the check that all pieces add up to the step."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from perfkit.floors.floors import Unit

ROUNDING = 1e-6
"""Relative error of summing a step's times in floating point, far above what it really is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attribution:
    """Kernel time of one step, by piece."""

    measured_us: Mapping[str, float]
    """By id of the piece; 0 where its ops ran no kernel."""
    unattributed_us: float
    """Kernel time under no label, or under a label that the ledger does not have."""
    total_us: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Closure:
    """attributed + unattributed = total, each known on its own."""

    attributed_us: float
    unattributed_us: float
    total_us: float

    @property
    def missing_us(self) -> float:
        """What the equation lacks; anything beyond rounding is a fault of the attribution."""
        return self.total_us - self.attributed_us - self.unattributed_us

    @property
    def is_closed(self) -> bool:
        """Whether the equation holds up to rounding."""
        return abs(self.missing_us) <= ROUNDING * max(self.total_us, 1.0)

    @property
    def line(self) -> str:
        """The equation in words, with its open rest where there is one."""
        share = f" ({100 * self.unattributed_us / self.total_us:.2f}%)" if self.total_us else ""
        text = (
            f"attributed {self.attributed_us:.1f} us + unattributed {self.unattributed_us:.1f} us{share} "
            f"= {self.total_us:.1f} us of kernel time"
        )
        return text if self.is_closed else f"{text}, DOES NOT CLOSE: {self.missing_us:+.1f} us are missing"


def attribute(
    units: Sequence[Unit],
    label_times_us: Mapping[int, float],
    *,
    unattributed_us: float,
    total_us: float,
) -> Attribution:
    """Sums the times per op (by ledger index, per step) over the ops of each piece.

    Times of indices that no piece has are unattributed as well: nothing is dropped.
    """
    owned = {op.index for unit in units for op in unit.ops}
    strays = sum(time for index, time in label_times_us.items() if index not in owned)
    return Attribution(
        measured_us={unit.id: sum(label_times_us.get(op.index, 0.0) for op in unit.ops) for unit in units},
        unattributed_us=unattributed_us + strays,
        total_us=total_us,
    )


def closure(attribution: Attribution) -> Closure:
    """The closing equation of an attribution."""
    return Closure(
        attributed_us=sum(attribution.measured_us.values()),
        unattributed_us=attribution.unattributed_us,
        total_us=attribution.total_us,
    )
