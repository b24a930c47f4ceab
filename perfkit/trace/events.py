"""One event of a profiler trace, and what its category means across profiler versions and vendors."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import msgspec

Place = int | str | None
"""A pid or tid: a number, or a name such as `Spans` or `stream 7`."""

KERNEL_CATS = frozenset({"kernel", "Kernel"})
MEMCPY_CATS = frozenset({"gpu_memcpy", "Memcpy"})
MEMSET_CATS = frozenset({"gpu_memset", "Memset"})
MEASURED_CATS = KERNEL_CATS | MEMCPY_CATS | MEMSET_CATS
"""Slices whose duration the device measured: what all GPU numbers are made of."""
LAUNCH_CATS = frozenset(
    {"cuda_runtime", "cuda_driver", "Runtime", "privateuse1_runtime", "privateuse1_driver", "xpu_runtime"}
)
OP_CATS = frozenset({"cpu_op", "Operator"})
ANNOTATION_CATS = frozenset({"user_annotation"})
RANGE_CATS = OP_CATS | ANNOTATION_CATS
"""Where a named CPU range can be: `record_function` writes annotations, its fast sibling writes ops."""


class Event(msgspec.Struct, gc=False):
    """One entry of `traceEvents`. Keys that are not listed here are only in the raw text."""

    ph: str = ""
    name: str = ""
    cat: str = ""
    pid: Place = None
    tid: Place = None
    ts: int | float | None = None
    """Microseconds, as written."""
    dur: int | float | None = None
    id: int | str | None = None
    args: msgspec.Raw = msgspec.Raw()

    @property
    def is_slice(self) -> bool:
        """A complete event with a place on the time axis."""
        return self.ph == "X" and self.ts is not None

    @property
    def is_measured(self) -> bool:
        """A kernel, copy or fill that ran on a device."""
        return self.cat in MEASURED_CATS and self.is_slice

    @property
    def start_ns(self) -> int:
        """Start in integer nanoseconds on the trace's own clock."""
        return nanoseconds(self.ts)

    @property
    def dur_ns(self) -> int:
        """Duration in integer nanoseconds; 0 when none is written."""
        return nanoseconds(self.dur)

    @property
    def end_ns(self) -> int:
        """Start plus duration, added as integers (in doubles the sum is off by up to a nanosecond)."""
        return nanoseconds(self.ts) + nanoseconds(self.dur)


class DecimalEvent(Event, gc=False):
    """The same event with times kept digit by digit, for clocks that a double cannot hold."""

    ts: Decimal | None = None  # type: ignore[assignment]
    dur: Decimal | None = None  # type: ignore[assignment]


class DeviceArgs(msgspec.Struct, gc=False, frozen=True):
    """The arguments that link a device slice to its launch."""

    correlation: int | str | None = None
    stream: int | str | None = None
    device: int | str | None = None
    external: int | str | None = msgspec.field(name="External id", default=None)
    process_group: Any = msgspec.field(name="Process Group Ranks", default=None)
    collective: str | None = msgspec.field(name="Collective name", default=None)


_DEVICE_ARGS = msgspec.json.Decoder(DeviceArgs)


def nanoseconds(time_us: int | float | None) -> int:
    """Microseconds to the nearest nanosecond; None is 0."""
    if time_us is None:
        return 0
    return time_us * 1000 if isinstance(time_us, int) else round(time_us * 1000)


def device_args(event: Event) -> DeviceArgs:
    """The link arguments of a device slice or a launch call; empty where the event carries none."""
    if not event.args:
        return DeviceArgs()
    try:
        return _DEVICE_ARGS.decode(event.args)
    except msgspec.DecodeError:  # args is null or a list, or an id is no id: there is nothing to link
        return DeviceArgs()
