"""Tolerance classes that a kernel recipe declares per dtype, as data with their source."""

from __future__ import annotations

from dataclasses import dataclass

from perfkit.errors import UsageError


@dataclass(frozen=True, kw_only=True, slots=True)
class Tolerance:
    """What a class of ops must keep, beside the rule that the target errs no more than twice as far."""

    name: str
    max_ulp: float | None
    """Largest distance from golden rounded to the dtype, in units of its spacing; None demands nothing."""
    source: str
    """Why this number."""


TOLERANCES = {
    t.name: t
    for t in (
        Tolerance(
            name="exact",
            max_ulp=0.0,
            source="Copies, permutations, gathers and casts compute nothing, so nothing may differ.",
        ),
        Tolerance(
            name="elementwise",
            max_ulp=2.0,
            source=(
                "An elementwise result is rounded correctly or off by 1 ulp; contraction into FMAs and "
                "approximate functions of GPUs cost at most one more."
            ),
        ),
        Tolerance(
            name="reduction",
            max_ulp=None,
            source="Orders of summation differ legitimately: only the error against the reference's counts.",
        ),
    )
}
"""By name. What declares none is judged as a reduction."""


def tolerance_named(name: str) -> Tolerance:
    """The declared class; `""` means `reduction`.

    Raises:
        UsageError: no such class.
    """
    found = TOLERANCES.get(name or "reduction")
    if found is None:
        raise UsageError(
            f"There is no tolerance class {name!r}.",
            why=f"Known are {', '.join(TOLERANCES)}.",
            do="Correct the table `tolerance` of the recipe.",
        )
    return found
