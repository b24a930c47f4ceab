"""Device slices, launches and steps of a trace as columns: what summaries need, at 40 bytes a slice."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from perfkit.trace.events import LAUNCH_CATS, MEASURED_CATS, RANGE_CATS, DeviceArgs, Event, Place, device_args
from perfkit.trace.intervals import Nanoseconds
from perfkit.trace.steps import STEP_PREFIX

Indices = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Kind:
    """What a device slice is, by everything that classification looks at."""

    name: str
    cat: str
    collective: str


@dataclass(frozen=True, slots=True)
class Columns:
    """Measured slices by start time. Entry i of each array describes slice i.

    `launched_ns` is the start of the launch call, or the slice's own start where `launch` is -1.
    """

    start_ns: Nanoseconds
    end_ns: Nanoseconds
    kind: Indices
    device: Indices
    stream: Indices
    launch: Indices
    launched_ns: Nanoseconds
    kinds: list[Kind]
    devices: list[Place]
    launch_names: list[str]
    """Name of the call of each launch index."""
    steps: list[tuple[str, int, int]]
    """Name, start and end of each profiler step, by start."""

    @property
    def num_slices(self) -> int:
        """Number of measured slices."""
        return len(self.start_ns)


@dataclass(slots=True)
class ColumnBuilder:
    """Takes events in any order and batch by batch."""

    _slices: array[int] = field(default_factory=lambda: array("q"))
    _launches: array[int] = field(default_factory=lambda: array("q"))
    _steps: list[tuple[str, int, int]] = field(default_factory=list)
    _kinds: dict[Kind, int] = field(default_factory=dict)
    _devices: dict[Place, int] = field(default_factory=dict)
    _streams: dict[tuple[Place, Place], int] = field(default_factory=dict)
    _calls: dict[str, int] = field(default_factory=dict)
    _named_ids: dict[str, int] = field(default_factory=dict)

    def add(self, events: Iterable[Event]) -> None:
        """Takes what matters from one batch."""
        for event in events:
            if event.cat in MEASURED_CATS:
                if event.is_slice:
                    self._add_slice(event, device_args(event))
            elif event.cat in LAUNCH_CATS:
                if event.is_slice:
                    call = self._calls.setdefault(event.name, len(self._calls))
                    self._launches.extend((self._id(device_args(event).correlation), event.start_ns, call))
            elif event.cat in RANGE_CATS and event.name.startswith(STEP_PREFIX) and event.is_slice:
                self._steps.append((event.name, event.start_ns, event.end_ns))

    def build(self) -> Columns:
        """The columns of everything that was added."""
        table = np.array(self._slices, dtype=np.int64).reshape(-1, 6)
        table = table[np.argsort(table[:, 0], kind="stable")]
        start_ns, end_ns, kind, device, stream, correlation = table.T
        launch, launched_ns, names = self._join(correlation, start_ns)
        return Columns(
            start_ns=start_ns,
            end_ns=end_ns,
            kind=kind,
            device=device,
            stream=stream,
            launch=launch,
            launched_ns=launched_ns,
            kinds=list(self._kinds),
            devices=list(self._devices),
            launch_names=names,
            steps=sorted(self._steps, key=lambda step: step[1]),
        )

    def _add_slice(self, event: Event, args: DeviceArgs) -> None:
        kind = Kind(event.name, event.cat, args.collective or "")
        self._slices.extend(
            (
                event.start_ns,
                event.end_ns,
                self._kinds.setdefault(kind, len(self._kinds)),
                self._devices.setdefault(event.pid, len(self._devices)),
                self._streams.setdefault((event.pid, event.tid), len(self._streams)),
                self._id(args.correlation),
            )
        )

    def _id(self, correlation: int | str | None) -> int:
        """Correlation ids as numbers; names become negative, and -1 stands for none."""
        if correlation is None:
            return -1
        if isinstance(correlation, int):
            return correlation if 0 <= correlation < 2**62 else self._id(str(correlation))
        return -2 - self._named_ids.setdefault(correlation, len(self._named_ids))

    def _join(self, correlation: Indices, start_ns: Nanoseconds) -> tuple[Indices, Nanoseconds, list[str]]:
        calls = np.array(self._launches, dtype=np.int64).reshape(-1, 3)
        calls = calls[np.lexsort((calls[:, 1], calls[:, 0]))]
        ids, first = np.unique(calls[:, 0], return_index=True)
        place = np.searchsorted(ids, correlation)
        inside = np.minimum(place, max(len(ids) - 1, 0))
        known = (place < len(ids)) & (correlation != -1)
        if len(ids):
            known &= ids[inside] == correlation
        launch = np.where(known, inside, -1)
        launched_ns = start_ns.copy()
        launched_ns[known] = calls[first, 1][launch[known]]
        texts = list(self._calls)
        return launch, launched_ns, [texts[call] for call in calls[first, 2].tolist()]
