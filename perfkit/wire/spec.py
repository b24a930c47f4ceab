"""What one child process is asked to do."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from perfkit.wire.codec import FORMAT_VERSION, digest

CaseValue = int | float | str | bool

ProgramName = Literal[
    "time_step", "take_profile", "count_costs", "measure_peaks", "verify_numerics", "describe_machine"
]
TargetKind = Literal["layer", "kernel"]
TreeName = Literal["eager", "regions", "block"]
DtypeName = Literal["fp64", "fp32", "bf16", "fp16"]
CheckpointMode = Literal["none", "full", "selective"]


class Target(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is investigated, and where its code lies.

    A recipe has `attribute == ""`: the file itself declares build/inputs (layer) or
    inputs/reference/target (kernel). A user's own target names a callable in `attribute`.
    Exactly one of `file` (absolute path) and `module` (dotted) is set.
    """

    name: str
    kind: TargetKind
    file: str = ""
    module: str = ""
    attribute: str = ""
    import_root: str = ""
    """Folder that enters sys.path after our own imports; "" for none."""
    source_sha256: str = ""
    blocks: tuple[str, ...] = ()
    """Class names that the block tree compiles and that checkpointing wraps."""
    regions: tuple[str, ...] = ()
    """Functions (`apply_rope`) or methods (`RMSNorm.forward`) that the regions tree compiles."""
    source: str = ""
    """Kernel recipes: the file beside the recipe, or the dotted module, that a variant replaces."""


class OverlayFile(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One file of a variant, laid over the module it replaces before anything imports that module."""

    replaces: str
    """A dotted module path, or the file name that the recipe's `source` gives."""
    path: str
    sha256: str


class Subject(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What is timed: a variant of the target run as one tree (layer) or through one provider (kernel)."""

    variant: str = "v0"
    overlay: tuple[OverlayFile, ...] = ()
    tree: TreeName = "eager"
    provider: str = ""
    """Kernels only: `target`, `eager` (the reference), `compile` (the reference compiled), or the
    suffix of a `provider_<suffix>` function."""

    @property
    def label(self) -> str:
        """How tables name it: `eager`, `v1/block`, `liger`, `v2/target`."""
        how = self.provider or self.tree
        return how if self.variant == "v0" else f"{self.variant}/{how}"


class Case(msgspec.Struct, frozen=True, kw_only=True):
    """One shape of the target: the keywords that its functions receive."""

    name: str
    values: dict[str, CaseValue]


class Measure(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """How to measure. Every field affects a number, so all of them enter the spec hash."""

    num_warmup_steps: int = 5
    num_timed_steps: int = 20
    num_profiled_steps: int = 5
    min_kernel_samples: int = 50
    """Kernels: least number of timed calls per direction."""
    graph: bool = True
    """CUDA: also capture the step and time its replays."""
    seed: int = 0
    num_threads: int = 0
    """CPU threads; 0 leaves the choice to the harness (physical cores), which states it."""
    fp32_precision: Literal["ieee", "tf32"] = "ieee"
    checkpoint: CheckpointMode = "none"
    quick: bool = False
    """A smoke run: numbers are labelled as such wherever they appear."""
    labelled_trace: bool = True
    verify_seeds: tuple[int, ...] = (0, 1)
    fudge_factor: float = 2.0
    atol: float = 0.0


class Spec(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One slot: one fresh process that runs one program on one subject and one case."""

    program: ProgramName
    device: str
    """`cpu` or `cuda:<index>`."""
    dtype: DtypeName = "fp32"
    target: Target | None = None
    subject: Subject = Subject()
    case: Case | None = None
    further_cases: tuple[Case, ...] = ()
    """verify_numerics of a kernel: more shapes for the same process, since errors need no fresh one."""
    measure: Measure = Measure()
    time_limit_s: float = 600.0
    tolerance: str = ""
    """Kernel recipes: the declared tolerance class for this dtype, such as `reduction`."""
    version: int = FORMAT_VERSION


def portable(spec: Spec) -> Spec:
    """The spec without where its files happen to lie on this machine: what an effort keeps."""
    target = spec.target
    if target is not None:
        target = msgspec.structs.replace(target, file=target.file.rpartition("/")[2], import_root="")
    overlay = tuple(msgspec.structs.replace(f, path="") for f in spec.subject.overlay)
    subject = msgspec.structs.replace(spec.subject, overlay=overlay)
    return msgspec.structs.replace(spec, target=target, subject=subject)


def spec_hash(spec: Spec) -> str:
    """16 hexadecimal digits that name what is measured.

    Two specs with the same hash measure the same code (by content hash) in the same way, so a slot that
    was recorded under it need not run again. The time limit is left out: it cannot change a number.
    """
    bare = msgspec.structs.replace(portable(spec), time_limit_s=0.0)
    return digest(msgspec.json.encode(_stated(bare), order="deterministic"))[:16]


def _stated(value: Any) -> Any:
    """The value without fields that equal their default, so that a new field leaves old hashes alone.

    msgspec's own omit_defaults compares strings by identity: the same spec, once written in code and once
    read from a command line, would hash differently.
    """
    if isinstance(value, msgspec.Struct):
        fields = ((f, getattr(value, f.name)) for f in msgspec.structs.fields(value))
        return {f.name: _stated(v) for f, v in fields if f.default is msgspec.NODEFAULT or v != f.default}
    if isinstance(value, tuple):
        return [_stated(item) for item in value]
    return value
