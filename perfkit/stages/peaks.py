"""peaks: what this device can do, measured once and kept by device, driver and torch version."""

from __future__ import annotations

import tempfile
from pathlib import Path

import msgspec

from perfkit.effort import Effort
from perfkit.errors import PerfkitError
from perfkit.machine.peaks_cache import load_peaks, save_peaks
from perfkit.stages.answer import StageReport
from perfkit.stages.devices import choose_device, device_facts
from perfkit.stages.request import StageRequest
from perfkit.stages.running import Say, launcher
from perfkit.stages.session import Session, installed_versions, nothing_recorded
from perfkit.stages.tables import peaks_table
from perfkit.wire.codec import decode, encode_pretty
from perfkit.wire.payloads import Peaks
from perfkit.wire.spec import Measure, Spec

TIME_LIMIT_S = 300.0
PEAKS_FILE = "peaks.json"


def run(request: StageRequest, *, say: Say) -> StageReport:
    """Shows the cached peaks, or measures them.

    Raises:
        PerfkitError: they could not be measured, or not be kept.
    """
    device = choose_device(request.device)
    peaks = ensure_peaks(device, request=request, say=say)
    return StageReport(
        tables=(peaks_table(peaks),),
        document={"peaks": peaks, "device": device},
        warnings=peaks_warnings(peaks),
    )


def ensure_peaks(device: str, *, request: StageRequest, say: Say) -> Peaks:
    """The cached peaks of this device under these versions, or new ones from a slot of their own.

    Raises:
        PerfkitError: the slot ended without an answer.
    """
    key = _key(device, num_threads=request.num_threads or 0)
    cached = load_peaks(key)
    if cached.message:
        say(cached.message)
    if cached.peaks is not None and not request.refresh:
        return cached.peaks
    say(f"Measuring what {device} can do; the answer is kept if the machine is quiet.")
    spec = Spec(
        program="measure_peaks",
        device=device,
        measure=Measure(num_threads=request.num_threads or 0),
        time_limit_s=TIME_LIMIT_S,
    )
    with tempfile.TemporaryDirectory(prefix="perfkit-peaks-") as folder:
        result = launcher(device)(spec, slot_dir=Path(folder))
        if not isinstance(result.payload, Peaks):
            log = (Path(folder) / "log.txt").read_text(errors="replace")[-2000:]
            raise PerfkitError(
                f"Could not measure the peaks of {device}.",
                why=result.reason or f"The slot ended as {result.fate}.",
                do=f"Run `perfkit doctor`. The end of the log:\n{log}".rstrip(),
            )
    if result.fate == "contaminated":
        say(f"These peaks were measured while the machine was disturbed and are not kept: {result.reason}")
        return result.payload
    peaks = msgspec.structs.replace(result.payload, device_key=key)
    doubts = peaks_warnings(peaks)
    if doubts:
        say(f"{' '.join(doubts)} These peaks are used, and measured again the next time.")
    else:
        save_peaks(peaks)
    return peaks


def kept_peaks(effort: Effort) -> Peaks | None:
    """The peaks that lie in the effort; None where no stage needed any yet."""
    path = effort.folder / PEAKS_FILE
    return decode(path.read_bytes(), Peaks) if path.is_file() else None


def peaks_of(session: Session, *, effort: Effort, say: Say) -> Peaks:
    """The peaks that the session's floors refer to, kept in the effort beside its results.

    Raises:
        PerfkitError: they could not be measured; or, for a session that measures nothing, none are kept.
    """
    kept = kept_peaks(effort)
    if session.recorded is not None:
        if kept is None:
            raise nothing_recorded(effort.folder, session.resolved.text)
        return kept
    key = _key(session.device, num_threads=session.request.num_threads or 0)
    cached = load_peaks(key).peaks
    # All stages of an effort refer to one set of ceilings, also where it was too doubtful for the cache.
    if cached is None and kept is not None and kept.device_key == key:
        return kept
    peaks = cached or ensure_peaks(session.device, request=session.request, say=say)
    effort.write(PEAKS_FILE, encode_pretty(peaks))
    return peaks


def peaks_warnings(peaks: Peaks) -> tuple[str, ...]:
    """One sentence per rate whose samples spread too far to call it a ceiling."""
    return tuple(
        f"{rate.name} varied by {rate.spread_percent:.0f}% between samples: the machine was not quiet."
        for rate in peaks.rates
        if rate.spread_percent > _WIDE_SPREAD_PERCENT
    )


_WIDE_SPREAD_PERCENT = 10.0
"""Quartile distance above which a ceiling is doubtful; quiet machines stay below 3%."""


def _key(device: str, *, num_threads: int) -> str:
    facts = {**installed_versions(), **device_facts(device)}
    facts.pop("perfkit")
    threads = f"{num_threads or 'default'} threads" if device == "cpu" else device
    return "|".join([*facts.values(), threads])
