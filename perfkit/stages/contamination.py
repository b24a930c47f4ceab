"""Turns a slot that was disturbed from outside into a contaminated one, by the rule of perfkit.machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec

from perfkit.machine.contamination import contamination
from perfkit.stages.slots import Launcher
from perfkit.wire.results import Result
from perfkit.wire.spec import Spec


def judged(launch: Any) -> Launcher:
    """The launcher, with the fate of a disturbed slot changed from ok to contaminated."""

    def launch_and_judge(spec: Spec, *, slot_dir: Path) -> Result:
        result: Result = launch(spec, slot_dir=slot_dir)
        if result.fate != "ok" or result.watch is None:
            return result
        reason = contamination(result.watch)
        return msgspec.structs.replace(result, fate="contaminated", reason=reason) if reason else result

    return launch_and_judge
