"""Measured peaks kept between runs, one file per device key."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import msgspec

from perfkit.errors import PerfkitError
from perfkit.files import write_atomic
from perfkit.places import cache_dir
from perfkit.wire.codec import decode, digest, encode_pretty
from perfkit.wire.payloads import Peaks

_LONGEST_KEY = 80


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedPeaks:
    """What the cache has for a device."""

    peaks: Peaks | None
    message: str = ""
    """Why a file that lies there is of no use; "" when it was used, or when there is none."""


def load_peaks(device_key: str, *, folder: Path | None = None) -> CachedPeaks:
    """The peaks of that device key; a file that cannot be used is named in the message and ignored."""
    path = peaks_file(device_key, folder=folder)
    try:
        peaks = decode(path.read_bytes(), Peaks)
    except FileNotFoundError:
        return CachedPeaks(peaks=None)
    except (msgspec.MsgspecError, UnicodeDecodeError, OSError) as error:
        return _ignored(path, f"it cannot be read ({error})")
    if peaks.device_key != device_key:
        return _ignored(path, f"it belongs to {peaks.device_key}")
    return CachedPeaks(peaks=peaks)


def save_peaks(peaks: Peaks, *, folder: Path | None = None) -> Path:
    """Writes the peaks under their device key, atomically, and returns the file.

    Raises:
        PerfkitError: the cache folder cannot be written.
    """
    path = peaks_file(peaks.device_key, folder=folder)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomic(path, encode_pretty(peaks))
    except OSError as error:
        raise PerfkitError(
            f"Cannot keep the measured peaks in {path.parent}.",
            why=f"{error.strerror or error}.",
            do="Free some space or check permissions, or set PERFKIT_CACHE_DIR to another folder.",
        ) from error
    return path


def peaks_file(device_key: str, *, folder: Path | None = None) -> Path:
    """Where the peaks of a device key lie: readable, safe as a file name, and distinct per key."""
    readable = re.sub(r"[^A-Za-z0-9._-]+", "_", device_key).strip("._")[:_LONGEST_KEY]
    return (folder or cache_dir()) / "peaks" / f"{readable}-{digest(device_key.encode())[:8]}.json"


def _ignored(path: Path, reason: str) -> CachedPeaks:
    message = f"Ignored {path}: {reason}. The peaks are measured again (perfkit peaks does so at any time)."
    return CachedPeaks(peaks=None, message=message)
