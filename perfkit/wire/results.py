"""What comes back from a child, what `launch` makes of it, and what an effort keeps."""

from __future__ import annotations

from typing import Literal

import msgspec

from perfkit.wire.codec import FORMAT_VERSION
from perfkit.wire.environment import Environment
from perfkit.wire.payloads import Payload
from perfkit.wire.spec import Spec

CLOSED_PIPE_EXIT = 74
"""Exit code (EX_IOERR of sysexits.h) of a child that finds its result pipe closed by the target."""

Fate = Literal["ok", "failed", "timed_out", "died", "contaminated", "not_capturable"]


class Failure(msgspec.Struct, frozen=True, kw_only=True):
    """Why a child could not answer, as it says itself."""

    kind: str
    """Exception class, such as `ValueError` or `OutOfMemoryError`."""
    message: str
    where: str
    """`file.py:12 in build`, the innermost frame outside torch and the harness; "" when unknown."""
    traceback: str


class Reply(msgspec.Struct, frozen=True, kw_only=True):
    """The one document that a child writes to its private pipe."""

    payload: Payload | None = None
    failure: Failure | None = None
    environment: Environment | None = None
    version: int = FORMAT_VERSION


class Watch(msgspec.Struct, frozen=True, kw_only=True):
    """What the parent saw of the device while the slot ran."""

    watched: bool
    why_not: str = ""
    num_polls: int = 0
    foreign_pids: tuple[int, ...] = ()
    sm_clock_mhz: tuple[int, ...] = ()
    """Minimum, median and maximum while the GPU was busy."""
    temperature_c: tuple[int, ...] = ()
    slowdown_reasons: tuple[str, ...] = ()
    """Thermal and hardware slowdown only; the software power cap is normal under load."""


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """One slot as it ended. Exactly one Result exists per launched slot."""

    spec_hash: str
    fate: Fate
    reason: str = ""
    payload: Payload | None = None
    failure: Failure | None = None
    environment: Environment | None = None
    watch: Watch | None = None
    started_at: str = ""
    duration_s: float = 0.0
    version: int = FORMAT_VERSION


class SlotRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One line of `results.jsonl`."""

    slot: str
    """Name of the folder under slots/."""
    stage: str
    """`profile`, `ideal`, `bench`, `verify` or `peaks`."""
    spec: Spec
    result: Result
    round: int = 0
    position: int = 0
    """Place in the round's order, from 0."""
    session: str = ""
    """Names the plan that this slot belongs to: runs of other options are never mixed in one table."""
    version: int = FORMAT_VERSION
