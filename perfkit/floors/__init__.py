"""From the ledger to islands, their floors, attributed times and the ranking of what to try first."""

from perfkit.floors.attribution import Attribution, Closure, attribute, closure
from perfkit.floors.dependencies import Dependencies
from perfkit.floors.floors import (
    Floor,
    Unit,
    find_units,
    floor_of,
    floor_us,
    unfused_floor_us,
    whole_floor,
)
from perfkit.floors.islands import Island, find_islands
from perfkit.floors.rank import MIN_SHARE, Candidate, rank, without_floor
from perfkit.floors.rates import bandwidth_of_mix
from perfkit.floors.table import NOISE, Row, explain_fast_bytes, ideal_rows, violations
from perfkit.floors.traffic import Traffic, external_traffic

__all__ = [
    "MIN_SHARE",
    "NOISE",
    "Attribution",
    "Candidate",
    "Closure",
    "Dependencies",
    "Floor",
    "Island",
    "Row",
    "Traffic",
    "Unit",
    "attribute",
    "bandwidth_of_mix",
    "closure",
    "explain_fast_bytes",
    "external_traffic",
    "find_islands",
    "find_units",
    "floor_of",
    "floor_us",
    "ideal_rows",
    "rank",
    "unfused_floor_us",
    "violations",
    "whole_floor",
    "without_floor",
]
