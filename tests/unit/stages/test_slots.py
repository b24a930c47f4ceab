"""Plans interleave; runs fill holes, keep what is there, and replace what was disturbed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from perfkit.effort import Effort
from perfkit.stages.plan import PlannedSlot, in_rounds
from perfkit.stages.slots import MAX_REPLACEMENTS, SlotsRun, run_slots
from perfkit.wire.payloads import StepTimes, Timing
from perfkit.wire.results import Fate, Result
from perfkit.wire.spec import Case, Spec, Subject, Target, spec_hash
from tests.unit.effort.test_effort import SETUP

TARGET = Target(name="toy", kind="layer", file="/somewhere/toy.py")


def spec(case: str, tree: str) -> Spec:
    return Spec(
        program="time_step",
        device="cpu",
        target=TARGET,
        subject=Subject(tree=tree),  # type: ignore[arg-type]
        case=Case(name=case, values={"tokens": 64}),
    )


SPECS = [[spec(case, tree) for tree in ("eager", "regions", "block")] for case in ("4k", "16k")]


class FakeLauncher:
    """Answers with the next fate of its list, then with ok."""

    def __init__(self, *fates: Fate) -> None:
        self.fates = list(fates)
        self.started: list[Spec] = []

    def __call__(self, spec: Spec, *, slot_dir: Path) -> Result:
        self.started.append(spec)
        fate = self.fates.pop(0) if self.fates else "ok"
        timing = Timing(direction="full", launch="launch", cache="warm", samples_us=(1.0,))
        payload = StepTimes(timings=(timing,)) if fate == "ok" else None
        return Result(spec_hash=spec_hash(spec), fate=fate, reason=fate, payload=payload)


@pytest.fixture
def effort(tmp_path: Path) -> Iterator[Effort]:
    with Effort.opened(tmp_path / "e", SETUP) as opened:
        yield opened


def run(effort: Effort, launch: FakeLauncher, plan: tuple[PlannedSlot, ...], session: str = "s") -> SlotsRun:
    return run_slots(plan, effort=effort, session=session, launch=launch, progress=lambda *_: None)


def test_each_round_takes_every_subject_and_the_order_is_reversed() -> None:
    plan = in_rounds("bench", SPECS, num_rounds=3)
    orders = [
        [
            p.spec.subject.label
            for p in plan
            if p.round == r and p.spec.case is not None and p.spec.case.name == "4k"
        ]
        for r in range(3)
    ]
    forward = ["eager", "regions", "block"]
    assert orders == [forward, forward[::-1], forward]
    assert [p.position for p in plan[:3]] == [0, 1, 2]


def test_a_killed_run_continues_where_it_stopped(effort: Effort) -> None:
    plan = in_rounds("bench", SPECS, num_rounds=2)
    run(effort, FakeLauncher(), plan[:5])
    launch = FakeLauncher()
    again = run(effort, launch, plan)
    assert again.num_reused == 5
    assert [spec_hash(s) for s in launch.started] == [spec_hash(p.spec) for p in plan[5:]]
    assert [r.result.spec_hash for r in again.records] == [spec_hash(p.spec) for p in plan]


def test_a_failed_slot_does_not_stop_the_others_and_is_tried_again(effort: Effort) -> None:
    plan = in_rounds("bench", SPECS, num_rounds=1)
    first = run(effort, FakeLauncher("failed", "timed_out", "died"), plan)
    assert [r.result.fate for r in first.records] == ["failed", "timed_out", "died", "ok", "ok", "ok"]
    assert len(first.failed) == 3
    launch = FakeLauncher()
    second = run(effort, launch, plan)
    assert len(launch.started) == 3
    assert not second.failed
    assert len({r.slot for r in effort.records()}) == 9


def test_a_contaminated_slot_is_kept_counted_and_replaced(effort: Effort) -> None:
    plan = in_rounds("bench", [SPECS[0][:1]], num_rounds=1)
    result = run(effort, FakeLauncher("contaminated"), plan)
    assert result.num_contaminated == 1
    assert result.records[0].result.fate == "ok"
    assert [r.result.fate for r in effort.records()] == ["contaminated", "ok"]


def test_replacement_ends(effort: Effort) -> None:
    plan = in_rounds("bench", [SPECS[0][:1]], num_rounds=1)
    result = run(effort, FakeLauncher(*["contaminated"] * 9), plan)
    assert result.num_contaminated == MAX_REPLACEMENTS + 1
    assert result.failed


def test_fresh_slots_run_again_and_the_older_records_stay(effort: Effort) -> None:
    plan = in_rounds("bench", [SPECS[0]], num_rounds=1)
    run(effort, FakeLauncher(), plan)
    launch = FakeLauncher()
    again = run_slots(plan, effort=effort, session="s", launch=launch, progress=lambda *_: None, fresh=True)
    assert (again.num_reused, len(launch.started), len(effort.records())) == (0, 3, 6)
    assert {r.slot for r in again.records} == {r.slot for r in effort.records()[3:]}


def test_records_of_other_versions_are_not_reused(effort: Effort) -> None:
    plan = in_rounds("bench", [SPECS[0]], num_rounds=1)
    run(effort, FakeLauncher(), plan, session="torch 2.11")
    launch = FakeLauncher()
    run(effort, launch, plan, session="torch 2.13")
    assert len(launch.started) == 3


def test_a_slot_whose_trace_is_gone_runs_again(effort: Effort) -> None:
    class Tracing(FakeLauncher):
        def __call__(self, spec: Spec, *, slot_dir: Path) -> Result:
            self.started.append(spec)
            (slot_dir / "trace.json.gz").write_bytes(b"trace")
            payload = StepTimes(timings=(), trace_file="trace.json.gz")
            return Result(spec_hash=spec_hash(spec), fate="ok", payload=payload)

    plan = in_rounds("profile", [SPECS[0][:1]], num_rounds=1)
    first = run(effort, Tracing(), plan)
    assert run(effort, Tracing(), plan).num_reused == 1
    (effort.folder / "slots" / first.records[0].slot / "trace.json.gz").unlink()
    assert run(effort, Tracing(), plan).num_reused == 0


def test_no_path_of_this_machine_is_kept(effort: Effort) -> None:
    run(effort, FakeLauncher(), in_rounds("bench", [SPECS[0][:1]], num_rounds=1))
    assert "/somewhere" not in (effort.folder / "results.jsonl").read_text()


def test_the_spec_hash_ignores_places_and_sees_content() -> None:
    base = spec("4k", "eager")
    import msgspec

    moved = msgspec.structs.replace(base, target=msgspec.structs.replace(TARGET, file="/elsewhere/toy.py"))
    changed = msgspec.structs.replace(base, target=msgspec.structs.replace(TARGET, source_sha256="f" * 64))
    assert spec_hash(moved) == spec_hash(base)
    assert spec_hash(changed) != spec_hash(base)
    assert spec_hash(msgspec.structs.replace(base, time_limit_s=1.0)) == spec_hash(base)


def test_the_spec_hash_does_not_depend_on_where_a_string_came_from() -> None:
    from perfkit.wire.codec import decode, encode

    written = spec("4k", "eager")
    read = decode(encode(written), Spec)
    split = spec("4k", "".join(["ea", "ger"]))
    assert spec_hash(read) == spec_hash(split) == spec_hash(written)
