"""One request made concrete: target, cases, device and options, in which effort, under which versions."""

from __future__ import annotations

import dataclasses
import importlib.metadata
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from perfkit.catalog import Remembered, Resolved, TargetOptions, resolve
from perfkit.effort import Header, read_header
from perfkit.effort.folder import Setup
from perfkit.effort.records import read_records
from perfkit.effort.variants import check_name, list_variants, overlay_of
from perfkit.errors import PerfkitError
from perfkit.machine.device import device_slug
from perfkit.stages.devices import choose_device, device_facts
from perfkit.stages.plan import unique_subjects
from perfkit.stages.providers import usable_providers
from perfkit.stages.request import StageRequest
from perfkit.version import __version__
from perfkit.wire.codec import digest
from perfkit.wire.spec import Case, DtypeName, Measure, ProgramName, Spec, Subject, Target

QUICK = Measure(
    num_warmup_steps=2,
    num_timed_steps=3,
    num_profiled_steps=1,
    min_kernel_samples=5,
    verify_seeds=(0,),
    quick=True,
)
"""What --quick measures: enough to see every path run, not enough to believe a number."""

DEFAULT_TIME_LIMIT_S = 600.0
DEFAULT_REPLICATES = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Session:
    """Everything that the stages of one command share."""

    request: StageRequest
    resolved: Resolved
    device: str
    dtype: DtypeName
    measure: Measure
    folder: Path
    key: str
    """Names versions and device: records of another session never enter a table of this one."""
    versions: dict[str, str]
    providers: tuple[str, ...]
    """Kernels: those of the resolved ones that can be timed here."""
    notes: tuple[str, ...]
    """Sentences for the user: what was assumed or left out."""
    recorded: Setup | None = None
    """Set for verbs that measure nothing: the setup that what is recorded was measured under."""
    num_rounds: int = 0
    """Rounds that are recorded; only together with `recorded`."""

    @property
    def target(self) -> Target:
        """What is investigated."""
        return self.resolved.target

    @property
    def is_layer(self) -> bool:
        """Whether the target is a layer rather than a kernel."""
        return self.target.kind == "layer"

    @property
    def replicates(self) -> int:
        """Fresh processes per subject and case."""
        if self.recorded is not None:
            return self.num_rounds
        if self.request.replicates is not None:
            return self.request.replicates
        return 1 if self.request.quick else DEFAULT_REPLICATES

    @property
    def cases(self) -> tuple[Case, ...]:
        """The shapes that are timed."""
        return self.resolved.cases

    def baselines(self) -> tuple[Subject, ...]:
        """The unmodified target, as each tree or provider."""
        if self.is_layer:
            return tuple(Subject(tree=tree) for tree in self.resolved.trees)
        return tuple(Subject(provider=provider) for provider in self.providers)

    def variants(self) -> tuple[Subject, ...]:
        """Every variant of the effort (or those asked for): in each tree, or as the kernel under test."""
        folder = self.folder / "variants"
        asked = self.request.variants
        names = list_variants(folder) if asked is None else tuple(name for name in asked if name != "v0")
        subjects = []
        for name in names:
            check_name(name)
            overlay = overlay_of(folder, name)
            if self.is_layer:
                trees = self.resolved.trees
                subjects += [Subject(variant=name, overlay=overlay, tree=tree) for tree in trees]
            else:
                subjects.append(Subject(variant=name, overlay=overlay, provider="target"))
        return unique_subjects(subjects)

    def spec(self, program: ProgramName, *, case: Case | None, subject: Subject | None = None) -> Spec:
        """The spec of one slot of the session."""
        return Spec(
            program=program,
            device=self.device,
            dtype=self.dtype,
            target=self.target,
            subject=subject or Subject(),
            case=case,
            measure=self.measure,
            time_limit_s=self.request.time_limit_s or DEFAULT_TIME_LIMIT_S,
            tolerance=self.resolved.tolerance(self.dtype),
        )

    def verify_spec(self, subject: Subject, cases: tuple[Case, ...]) -> Spec:
        """The spec of one slot of verify, over all its cases."""
        spec = self.spec("verify_numerics", case=cases[0], subject=subject)
        return msgspec.structs.replace(spec, further_cases=cases[1:])

    def setup(self) -> Setup:
        """What the effort's header remembers of the session."""
        if self.recorded is not None:
            return self.recorded
        options = {
            "target": msgspec.to_builtins(self.resolved.options),
            "measure": msgspec.to_builtins(self.measure),
        }
        return Setup(
            target=self.resolved.text,
            kind=self.target.kind,
            source_sha256=self.target.source_sha256,
            cases=self.cases,
            device=self.device,
            dtype=self.dtype,
            options=options,
            versions=self.versions,
        )


def prepare(request: StageRequest, *, timed: bool = True) -> Session:
    """Resolves a request that measures on this machine; `timed` is False where only results are compared.

    Raises:
        UsageError: an unknown target or device, or an option that does not fit.
        PerfkitError: an effort that cannot be read.
    """
    header = _header_of(request)
    device = choose_device(_remembered_device(request, header))
    resolved = _resolve(request, device)
    if header is None and resolved.effort is not None:
        header = read_header(resolved.effort)
    layer = resolved.target.kind == "layer"
    providers, provider_notes = (
        ((), ()) if layer else usable_providers(resolved, request, device=device, timed=timed)
    )
    versions = {**installed_versions(), **device_facts(device)}
    return Session(
        request=request,
        resolved=resolved,
        device=device,
        dtype=request.dtype or _default_dtype(device, header),
        measure=_measure(request, resolved),
        folder=resolved.effort or _folder(request, resolved, device),
        key=_key(versions),
        versions=versions,
        providers=providers,
        notes=(*resolved.notes, *provider_notes),
    )


def prepare_recorded(request: StageRequest, *, earlier: str) -> Session:
    """Resolves a request that only looks at what an effort has recorded, on whatever machine that was.

    Device, dtype, versions and measuring options are those of the effort's setup in force, so that a report
    can be made again where there is no GPU, after the target's source changed, or without repeating flags.
    `earlier` names the stage to run first where nothing is recorded.

    Raises:
        UsageError: an unknown target.
        PerfkitError: there is no effort of it yet, or it cannot be read.
    """
    folder = _named_folder(request) or prepare(request).folder
    header = read_header(folder)
    if header is None:
        raise nothing_recorded(folder, request.target, earlier=earlier)
    setup = header.setup
    resolved = _resolve(dataclasses.replace(request, target=str(folder)), setup.device)
    target = msgspec.structs.replace(resolved.target, source_sha256=setup.source_sha256)
    resolved = dataclasses.replace(resolved, target=target, cases=setup.cases)
    rounds = [record.round for record in read_records(folder / "results.jsonl")]
    return Session(
        request=request,
        resolved=resolved,
        device=setup.device,
        dtype=setup.dtype,
        measure=msgspec.convert(setup.options["measure"], Measure),
        folder=folder,
        key=_key(setup.versions),
        versions=setup.versions,
        providers=resolved.providers,
        notes=(),
        recorded=setup,
        num_rounds=max(rounds, default=0) + 1,
    )


def nothing_recorded(folder: Path, text: str, *, earlier: str = "") -> PerfkitError:
    """What to say when a stage needs an earlier one, which is named where it is known."""
    ran = f"`{earlier}` has not" if earlier else "No stage that measures has"
    first = f"`perfkit {earlier} {text}` first, or " if earlier else ""
    return PerfkitError(
        f"{folder} has nothing recorded to go on with.",
        why=f"{ran} run there under these options and versions.",
        do=f"Run {first}`perfkit investigate {text}`.",
    )


def _resolve(request: StageRequest, device: str) -> Resolved:
    return resolve(
        request.target,
        device=device,
        options=request.target_options,
        out=request.out,
        read_effort=_read_effort,
    )


def _key(versions: dict[str, str]) -> str:
    return digest(msgspec.json.encode(versions, order="deterministic"))[:12]


def installed_versions() -> dict[str, str]:
    """Versions of what measured code depends on, from package metadata: nothing is imported."""
    versions = {"perfkit": __version__}
    for package in ("torch", "triton"):
        try:
            versions[package] = importlib.metadata.version(package)
        except importlib.metadata.PackageNotFoundError:
            versions[package] = "not installed"
    return versions


def _measure(request: StageRequest, resolved: Resolved) -> Measure:
    base = QUICK if request.quick else Measure()
    return msgspec.structs.replace(
        base,
        seed=request.seed,
        num_threads=request.num_threads or 0,
        fp32_precision=request.fp32_precision,
        checkpoint=resolved.checkpoint,
        graph=request.graph,
    )


def _default_dtype(device: str, header: Header | None) -> DtypeName:
    if header is not None and header.setup.device == device:
        return header.setup.dtype
    return "fp32" if device == "cpu" else "bf16"


def _folder(request: StageRequest, resolved: Resolved, device: str) -> Path:
    name = request.effort or f"{resolved.target.name}-{device_slug(device)}"
    if "/" in name or name in ("", ".", ".."):
        raise PerfkitError(
            f"{name!r} cannot name an effort.",
            why="An effort is one folder below --out.",
            do="Give a plain name with --effort, and the folder above it with --out.",
        )
    return request.out / name


def _header_of(request: StageRequest) -> Header | None:
    """The effort that the target's text names, if it names one: it knows its device."""
    folder = _named_folder(request)
    return None if folder is None else read_header(folder)


def _named_folder(request: StageRequest) -> Path | None:
    for folder in (Path(request.target), request.out / request.target):
        if request.target and read_header(folder) is not None:
            return folder
    return None


def _remembered_device(request: StageRequest, header: Header | None) -> str:
    if request.device == "auto" and header is not None:
        return header.setup.device
    return request.device


def _read_effort(folder: Path) -> Remembered:
    header = read_header(folder)
    if header is None:
        raise PerfkitError(
            f"{folder} is not an effort.",
            why="It has no effort.json.",
            do="Name a target, or the folder of an effort.",
        )
    options: dict[str, Any] = header.setup.options.get("target", {})
    return Remembered(text=header.setup.target, options=msgspec.convert(options, TargetOptions))
