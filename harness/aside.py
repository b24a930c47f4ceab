"""Baselines from a process of their own: a variant laid over the code hides the unmodified one.

That process belongs to the slot like any other that a target starts, and is ended with it.
"""

from __future__ import annotations

import subprocess
import sys
import traceback
from pathlib import Path
from typing import NoReturn

import torch

from perfkit.errors import PerfkitError
from perfkit.wire.codec import decode, encode, replace
from perfkit.wire.results import Failure
from perfkit.wire.spec import Spec, Subject

from .environment import settle
from .failures import describe
from .golden import Baseline, make_baseline, seeded
from .load import load_code

_SPEC, _FAILURE = "spec.json", "failure.json"


def compute_aside(spec: Spec, *, folder: Path) -> None:
    """Leaves the baseline of every verify seed in the folder, which must not exist yet.

    Raises:
        PerfkitError: the unmodified code could not be run; the text says why.
    """
    folder.mkdir(parents=True)
    (folder / _SPEC).write_bytes(encode(_without_variant(spec)))
    entry = Path(__file__).with_name("aside_entry.py")
    package = Path(sys.modules[PerfkitError.__module__].__file__ or "").parent
    command = [sys.executable, "-P", str(entry), f"perfkit={package}", f"folder={folder}"]
    # Not check=True: the failure that the process describes says more than its exit code.
    code = subprocess.run(command, check=False).returncode
    if code == 0:
        return
    why = f"Its process ended with code {code}."
    if (failure := folder / _FAILURE).is_file():
        found = decode(failure.read_bytes(), Failure)
        why = f"{found.kind}{f' at {found.where}' if found.where else ''}: {found.message}"
    raise PerfkitError(
        "The unmodified code could not be run, so there is nothing to compare the variant with.",
        why=why,
        do="See the slot's log, and verify the baseline (v0) first.",
    )


def read_baseline(folder: Path, *, seed: int) -> Baseline:
    """A baseline that `compute_aside` left; its file is removed, since it can be as large as the model."""
    file = folder / f"{seed}.pt"
    baseline: Baseline = torch.load(file, weights_only=False)
    file.unlink()
    return baseline


def main(folder: Path) -> NoReturn:
    """The other process: what it cannot do it describes in a file beside its spec."""
    try:
        spec = decode((folder / _SPEC).read_bytes(), Spec)
        settle(spec)
        code, _ = load_code(spec)
        for one in seeded(spec):
            torch.save(make_baseline(one, code), folder / f"{one.measure.seed}.pt")
    except BaseException as error:  # noqa: BLE001 - the boundary of this process
        traceback.print_exc()
        (folder / _FAILURE).write_bytes(encode(describe(error)))
        sys.exit(1)
    sys.exit(0)


def _without_variant(spec: Spec) -> Spec:
    return replace(spec, subject=Subject())
