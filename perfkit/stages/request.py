"""What a command line asks of a stage: every option that any verb takes, as the user gave it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from perfkit.catalog.options import TargetOptions
from perfkit.stages.answer import StageReport
from perfkit.wire.spec import CheckpointMode, DtypeName, TreeName

StageName = Literal["profile", "ideal", "rank", "bench", "verify", "finalize"]
"""The stages of an investigation, in the order in which they run."""


def ignore_progress(num_done: int, num_total: int, label: str) -> None:
    """The progress callback of whoever shows none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StageRequest:
    """The request of one command.

    A field that is None was not stated anywhere (flag, environment or pyproject.toml): the stage chooses,
    from the recipe or from the device. Names and combinations that make no sense are refused by
    perfkit.catalog once the target is known; numbers are in range already.
    """

    target: str = ""
    """TARGET or EFFORT as typed; "" for the verbs that take none (doctor, peaks)."""

    device: str = "auto"
    """`auto`, `cpu`, `cuda` or `cuda:<index>`."""
    dtype: DtypeName | None = None
    seed: int = 0
    num_threads: int | None = None
    """CPU threads of the measured process; None leaves it to the harness (physical cores)."""
    fp32_precision: Literal["ieee", "tf32"] = "ieee"
    time_limit_s: float | None = None
    """Of one slot."""

    cases: tuple[str, ...] | None = None
    """Names that select among the target's cases."""
    case_tables: tuple[str, ...] = ()
    """`tokens=4096,dim=256` or `big:tokens=4096`: cases of a target that declares none."""
    blocks: tuple[str, ...] | None = None
    regions: tuple[str, ...] | None = None
    trees: tuple[TreeName, ...] | None = None
    checkpoint: CheckpointMode | None = None
    providers: tuple[str, ...] | None = None
    variants: tuple[str, ...] | None = None
    """`v0`, `v1`, ...: None means every variant that the effort has."""

    replicates: int | None = None
    """Processes per subject and case."""
    quick: bool = False
    graph: bool = True
    """CUDA: also replay the step from a CUDA graph."""

    effort: str | None = None
    """Name of the folder below `out`; None for the default name."""
    out: Path = Path("reports")
    overwrite: bool = False
    dry_run: bool = False
    """List the slots that would run, and start none."""

    until: StageName | None = None
    """investigate: the last stage to run."""
    ask: Callable[[str, StageReport], bool] | None = None
    """investigate --ask: shows the named stage's report, and answers whether to go on."""
    progress: Callable[[int, int, str], None] = ignore_progress
    """Called after each finished unit (slot): how many are done, of how many, and a line about it."""

    refresh: bool = False
    """peaks: measure again although the cache has an answer."""
    text: str = ""
    """log: the entry. new variant: the hypothesis."""
    replaces: tuple[str, ...] = ()
    """new variant: dotted modules whose files the variant starts from; () for the target's own source."""

    @property
    def target_options(self) -> TargetOptions:
        """The part of the request that perfkit.catalog resolves together with the target."""
        return TargetOptions(
            cases=self.cases,
            case_tables=self.case_tables,
            blocks=self.blocks,
            regions=self.regions,
            trees=self.trees,
            checkpoint=self.checkpoint,
            providers=self.providers,
        )
