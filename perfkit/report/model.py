"""Plain data that the documents, tables and plots are rendered from.

Stages fill these from `results.jsonl` and the slots' files; nothing here reads a file or knows the
wire. Times are in microseconds of one step (or one call of a kernel), shares are fractions of 1, and
None means "not measured": renderers print it as a hole, never as 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from perfkit.stats import PairedRatio, ProcessInterval

Kind = Literal["layer", "kernel"]
Launch = Literal["launch", "graph"]
Cache = Literal["cold", "warm"]
Direction = Literal["forward", "backward", "full"]
TimeKind = Literal["wall", "kernel"]
Verdict = Literal["PASS", "PASS WITH LIMITATIONS", "FAIL", "INCONCLUSIVE", "not verified", "reference"]
"""`reference` is what the others are verified against, so it needs no verdict of its own."""
ChangeKind = Literal["tree", "variant", "provider"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """Under what every number of one document was measured: the first line of each of them."""

    target: str
    kind: Kind
    device: str
    """`cpu` or `cuda:0`."""
    device_name: str
    """`NVIDIA H200`, or the CPU model."""
    dtype: str
    torch: str
    triton: str | None
    num_processes: int
    """Fresh processes per number, as planned; each row names how many it really has."""
    checkpoint: str = "none"
    fp32_precision: str = ""
    driver: str = ""
    num_threads: int | None = None
    """CPU threads; None on a GPU."""
    quick: bool = False
    date: str = ""
    """ISO date of the newest measurement."""

    @property
    def on_gpu(self) -> bool:
        """Whether launch states, kernel names and peak memory mean anything here."""
        return self.device != "cpu"


@dataclass(frozen=True, slots=True, kw_only=True)
class MatrixRow:
    """One subject on one case in one launch state: a line of profile.md's matrix."""

    case: str
    subject: str
    """Label of the subject: `eager`, `block`, `v1/block`."""
    launch: Launch
    direction: Direction
    cache: Cache
    wall: ProcessInterval | None
    kernel: ProcessInterval | None = None
    """Kernel time of the step (CPU: time inside top-level ops)."""
    num_kernels: float | None = None
    peak_memory_bytes: int | None = None
    num_graphs: int | None = None
    cold_compile_s: float | None = None
    fate: str = "ok"
    """`ok`, or why there is no number: `not_capturable`, `failed`, `timed_out`, `died`, ..."""
    reason: str = ""
    attention_kernels: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRow:
    """One kernel name, or one family, within one step of one subject."""

    case: str
    subject: str
    name: str
    """Kernel name; for a row of the family table the family itself."""
    family: str
    time_us: float
    num_calls: float
    share: float
    """Of the step's kernel time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One island of glue or one cut op: what it took against what it could take."""

    case: str
    name: str
    """Short and unique within the case: `island 12`, `gemm 3`."""
    phase: str
    kind: str
    """`glue`, `gemm`, `attention`, `collective` or `opaque`."""
    measured_us: float
    floor_us: float | None
    unfused_floor_us: float | None
    num_ops: int
    ops: str = ""
    """Op names in order, for people: `mul, add, rsqrt`."""
    modules: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
    """`llama3_block.py:41 apply_rope`, those of most ops first."""
    bound: str = ""
    """Which ceiling sets the floor: `launch`, `bytes`, `flops` or `unknown`."""
    num_bytes: int | None = None
    """External bytes, read and written."""
    num_flops: int | None = None
    flags: tuple[str, ...] = ()
    """`fits_cache`, `below_floor`, and what weakens the floor."""

    @property
    def gain_us(self) -> float | None:
        """Measured above floor: what the piece could give back at best; None without a floor."""
        return None if self.floor_us is None else self.measured_us - self.floor_us

    @property
    def where(self) -> str:
        """The best name for people: the first source line, else the module, else the ops."""
        return next((t for t in (*self.sources, *self.modules, self.ops) if t), self.name)


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One piece in the ranking of what to try first."""

    rank: int
    piece: Piece
    gain_us: float
    """(measured - floor), the sort key of the ranking."""
    share: float
    """Of `gain_us` in the step."""
    worthwhile: bool
    """False below 1% of the step."""
    advice: str = ""
    """The pattern that matches, if one does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Closure:
    """Whether the pieces of one case add up to its step."""

    case: str
    total_us: float
    attributed_us: float
    notes: tuple[str, ...] = ()

    @property
    def unattributed_us(self) -> float:
        """What no op could be named for."""
        return self.total_us - self.attributed_us


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderRow:
    """Kernel targets: one provider on one case in one direction and launch state."""

    case: str
    provider: str
    direction: Direction
    launch: Launch
    cache: Cache
    time: ProcessInterval | None
    num_bytes: int | None = None
    """Bytes that the pass must move, as the recipe's `work` or the ledger says."""
    num_flops: int | None = None
    bandwidth_share: float | None = None
    """num_bytes / kernel time (time, without kernels) over the measured peak for the same mix."""
    flops_share: float | None = None
    peak_memory_bytes: int | None = None
    bottleneck: str = ""
    evidence: tuple[str, ...] = ()
    """The observations behind `bottleneck`; a class without evidence is not printed."""
    fate: str = "ok"
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Profile:
    """Everything in profile.md. Layers fill matrix, families, kernels; kernels fill providers."""

    conditions: Conditions
    matrix: tuple[MatrixRow, ...] = ()
    families: tuple[KernelRow, ...] = ()
    kernels: tuple[KernelRow, ...] = ()
    """Top kernels per case and subject, most costly first."""
    closures: tuple[Closure, ...] = ()
    candidates: tuple[Candidate, ...] = ()
    providers: tuple[ProviderRow, ...] = ()
    peaks: tuple[tuple[str, str], ...] = ()
    """(name, value with unit): the measured ceilings that shares refer to."""
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparisonRow:
    """One subject on one case, direction, launch and cache state, with all its processes."""

    case: str
    subject: str
    direction: Direction
    launch: Launch
    cache: Cache
    kind: TimeKind
    time: ProcessInterval | None
    """None where no process gave a number."""
    ratio: PairedRatio | None = None
    """To the baseline of the same case and states, paired by round; None for the baseline itself."""
    verdict: Verdict = "not verified"
    verdict_reason: str = ""
    fates: Mapping[str, int] = field(default_factory=dict)
    """Fate -> number of slots, of all that were launched for this row."""
    is_baseline: bool = False
    """Whether the ratios of its group refer to this row."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """Everything in comparison.md."""

    conditions: Conditions
    baseline: str
    """Label of the subject that ratios refer to."""
    rows: tuple[ComparisonRow, ...]
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Correctness:
    """What verify found for one subject, in the terms of a PR's correctness line."""

    subject: str
    verdict: Verdict
    dtype: str
    num_outputs: int
    num_gradients: int
    worst_tensor: str = ""
    rel_l2_target: float | None = None
    """Worst tensor: |subject - golden| / |golden| in L2."""
    rel_l2_reference: float | None = None
    """The same for the baseline in the same dtype, on the same tensor."""
    golden_dtype: str = "fp64"
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A subject seen as a change that somebody could review."""

    subject: str
    kind: ChangeKind
    """`tree` (regions or block), `variant` (an overlay) or `provider` (another implementation)."""
    names: tuple[str, ...]
    """What it touches: block classes, region functions, replaced files, or the provider's name."""
    idea: str = ""
    """Variants: the hypothesis written down before the run."""
    predicted: str = ""
    """Variants: the number predicted before the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rejected:
    """An idea that was measured, or stopped, and not kept."""

    idea: str
    number: str
    """What was measured for it, with its unit; "" when it never ran."""
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Findings:
    """Everything in findings.md and the PR texts."""

    conditions: Conditions
    comparison: Comparison
    changes: tuple[Change, ...] = ()
    """All subjects other than the baseline that could be proposed."""
    matrix: tuple[MatrixRow, ...] = ()
    providers: tuple[ProviderRow, ...] = ()
    pieces: tuple[Piece, ...] = ()
    """All islands and cut ops of the eager step."""
    candidates: tuple[Candidate, ...] = ()
    closures: tuple[Closure, ...] = ()
    correctness: tuple[Correctness, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    compile_limits: tuple[str, ...] = ()
    """Cost, workaround, repro; one line each."""
    not_tested: tuple[str, ...] = ()
    feedback: tuple[str, ...] = ()
    """Missing patterns and wrong advice."""
    test_command: str = ""
    """What reproduces the numbers, in full; by default verify and bench of the target."""
