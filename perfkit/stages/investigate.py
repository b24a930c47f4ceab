"""investigate: all stages in a row; what is recorded already is not measured again."""

from __future__ import annotations

from collections.abc import Callable

from perfkit.effort import Effort
from perfkit.errors import ExitCode
from perfkit.stages.answer import StageReport
from perfkit.stages.bench import bench
from perfkit.stages.finalize import finalize
from perfkit.stages.ideal import ideal
from perfkit.stages.plan import PlannedSlot
from perfkit.stages.plans import plan_bench, plan_ideal, plan_profile, plan_verify
from perfkit.stages.profile import profile
from perfkit.stages.rank import rank
from perfkit.stages.request import StageName, StageRequest
from perfkit.stages.running import Say, dry_run, opened
from perfkit.stages.session import Session, prepare
from perfkit.stages.verify import verify

Stage = Callable[[Session, Effort, Say], StageReport]

STAGES: dict[StageName, Stage] = {
    "profile": lambda s, e, say: profile(s, effort=e, plan=plan_profile(s), say=say),
    "ideal": lambda s, e, say: ideal(s, effort=e, plan=plan_ideal(s), say=say),
    "rank": lambda s, e, say: rank(s, effort=e, say=say),
    # Before bench: what computes the wrong thing is not worth timing, and must not be ranked.
    "verify": lambda s, e, say: verify(s, effort=e, plan=plan_verify(s)),
    "bench": lambda s, e, say: bench(s, effort=e, plan=plan_bench(s)),
    "finalize": lambda s, e, say: finalize(s, effort=e, say=say),
}


def run(request: StageRequest, *, say: Say) -> StageReport:
    """Runs the stages up to `request.until`, asking between them if `request.ask` is set.

    Raises:
        PerfkitError, UsageError: see prepare; also when a stage has nothing to work on.
    """
    session = prepare(request)
    names = _up_to(request.until)
    if request.dry_run:
        return dry_run(_whole_plan(session, names), session=session)
    reports: dict[StageName, StageReport] = {}
    with opened(session, say=say) as effort:
        for name in names:
            say(f"Stage {name}")
            reports[name] = STAGES[name](session, effort, say)
            for warning in reports[name].warnings:
                say(f"warning: {warning}")
            if request.ask is not None and name != names[-1] and not request.ask(name, reports[name]):
                effort.note(f"Stopped after {name}, as asked")
                break
    return _joined(reports)


def _up_to(until: StageName | None) -> tuple[StageName, ...]:
    names = tuple(STAGES)
    return names if until is None else names[: names.index(until) + 1]


def _whole_plan(session: Session, names: tuple[StageName, ...]) -> tuple[PlannedSlot, ...]:
    plans = {"profile": plan_profile, "ideal": plan_ideal, "verify": plan_verify, "bench": plan_bench}
    return tuple(slot for name in names if name in plans for slot in plans[name](session))


def _joined(reports: dict[StageName, StageReport]) -> StageReport:
    """The last stage's answer, with the files of all and the worst exit code.

    A negative or inconclusive verdict of verify is part of the findings, not a failure of the investigation.
    """
    last = next(reversed(reports.values()))
    failed = any(report.exit_code == ExitCode.FAILED for report in reports.values())
    files = dict.fromkeys(path for report in reversed(reports.values()) for path in report.files)
    return StageReport(
        headline=last.headline,
        tables=last.tables,
        document={"stages": {name: report.document for name, report in reports.items()}},
        exit_code=ExitCode.FAILED if failed else ExitCode.GOOD,
        files=tuple(files),
        # Said while the stages ran; the failed slots are worth repeating at the end.
        warnings=tuple(
            warning for report in reports.values() if report.exit_code for warning in report.warnings
        ),
    )
