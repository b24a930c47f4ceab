"""Profiles a step with a label around each op, for times per op, and measures what the labels cost."""

from __future__ import annotations

import gzip
import json
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile, record_function

from .kernels_seen import device_uses
from .scopes import LABEL_PREFIX, LabelMode

Event = dict[str, Any]


@dataclass(frozen=True)
class LabelledRun:
    """Device time per step (CPU: time in ops), and the op names of each step."""

    time_us: float
    names: tuple[tuple[str, ...], ...]


def labelled_run(
    step: Callable[[], Any], *, device: torch.device, num_steps: int, trace_file: Path
) -> LabelledRun:
    """Profiles `num_steps` steps with each op in a range `pk:<index>`, and writes the trace."""
    on_gpu = device.type == "cuda"
    activities = [ProfilerActivity.CPU, *([ProfilerActivity.CUDA] if on_gpu else [])]
    mode, names = LabelMode(), []
    with profile(activities=activities) as profiler, mode.watching():
        for index in range(num_steps):
            mode.restart()
            with record_function(f"ProfilerStep#{index}"):
                step()
                if on_gpu:
                    torch.cuda.synchronize(device)
            names.append(mode.names)
    profiler.export_chrome_trace(str(trace_file))
    events = _read(trace_file)
    time_us = sum(us for _, us in device_uses(events)) if on_gpu else op_time_us(events)
    return LabelledRun(time_us=time_us / num_steps, names=tuple(names))


def _read(trace_file: Path) -> list[Event]:
    with gzip.open(trace_file, "rt", encoding="utf-8", errors="replace") as text:
        document = json.load(text, strict=False)
    return [event for event in document["traceEvents"] if event.get("ph") == "X"]


def op_time_us(events: Iterable[Event]) -> float:
    """Time of a CPU trace in outermost ops, labels and what holds labels being looked through.

    A holder is a recipe such as `aten::linear` around the labelled `aten::mm`: the rest of its time is the
    work of labelling. Autograd's wrappers are no ops either.
    """
    threads: defaultdict[str, list[Event]] = defaultdict(list)
    for event in events:
        threads[str(event.get("tid"))].append(event)
    return sum(
        _of_thread(sorted(t, key=lambda e: (float(e["ts"]), -float(e["dur"])))) for t in threads.values()
    )


def _of_thread(events: list[Event]) -> float:
    holders = _holders(events)
    time_us, end = 0.0, 0.0
    for event in events:
        if id(event) in holders or not _is_op(event) or float(event["ts"]) < end:
            continue
        end = _end(event)
        time_us += float(event["dur"])
    return time_us


def _holders(events: list[Event]) -> set[int]:
    holders: set[int] = set()
    opened: list[Event] = []
    for event in events:
        while opened and _end(opened[-1]) <= float(event["ts"]):
            opened.pop()
        if str(event["name"]).startswith(LABEL_PREFIX):
            holders.update(id(around) for around in opened)
        opened.append(event)
    return holders


def _is_op(event: Event) -> bool:
    name = str(event["name"])
    return event.get("cat") == "cpu_op" and "::" in name and not name.startswith(("autograd::", "torch::"))


def _end(event: Event) -> float:
    return float(event["ts"]) + float(event["dur"])
