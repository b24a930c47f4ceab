"""Whom a guardian takes for the child's family, on process tables made by hand."""

from __future__ import annotations

import importlib
import os
from typing import Any

import pytest

from tests.support.harness import load_harness

load_harness()
guardian = importlib.import_module("perfkit_harness.guardian")

_LEADER, _BORN = 50_000_000, 1000
_QUARRY = guardian.Quarry(_LEADER, _BORN, b"MARK=7")


@pytest.fixture(autouse=True)
def variables(monkeypatch: pytest.MonkeyPatch) -> dict[int, list[bytes]]:
    variables: dict[int, list[bytes]] = {}
    monkeypatch.setattr(guardian, "_variables", lambda pid: variables.get(pid, []))
    return variables


def _process(pid: int, **changed: Any) -> Any:
    fields = {"state": "S", "parent": 1, "group": pid, "session": pid, "started": _BORN + 1} | changed
    return guardian.Process(pid=pid, **fields)


_CHILD = _process(_LEADER, started=_BORN)


def _family(*processes: Any, known: frozenset[tuple[int, int]] = frozenset()) -> set[int]:
    return {p.pid for p in guardian.find_family(list(processes), _QUARRY, known)}


def test_the_child_itself_belongs_and_strangers_do_not() -> None:
    assert _family(_CHILD, _process(7), _process(8, parent=7)) == {_LEADER}


def test_group_session_and_ancestry_are_family() -> None:
    in_group = _process(7, group=_LEADER)
    in_session = _process(8, session=_LEADER)
    grandchild = _process(10, parent=9)
    assert _family(grandchild, _process(9, parent=_LEADER), in_group, in_session, _CHILD) == {
        _LEADER, 7, 8, 9, 10,
    }  # fmt: skip


def test_the_marker_finds_orphans_and_their_children(variables: dict[int, list[bytes]]) -> None:
    variables[7] = [b"HOME=/", b"MARK=7"]
    variables[9] = [b"MARK=77"]
    assert _family(_process(7), _process(8, parent=7), _process(9)) == {7, 8}


def test_nothing_older_than_the_child_is_family(variables: dict[int, list[bytes]]) -> None:
    variables[7] = [b"MARK=7"]
    assert _family(_process(7, started=_BORN - 1)) == set()


def test_zombies_are_gone_but_their_children_are_not() -> None:
    assert _family(_CHILD._replace(state="Z"), _process(7, parent=_LEADER)) == {7}


def test_members_found_before_stay_members_unless_the_pid_was_given_away() -> None:
    known = frozenset({(7, _BORN + 1), (8, _BORN + 1)})
    assert _family(_process(7), _process(8, started=_BORN + 50), known=known) == {7}


def test_the_guardian_never_hunts_itself(variables: dict[int, list[bytes]]) -> None:
    variables[os.getpid()] = [b"MARK=7"]
    assert _family(_process(os.getpid())) == set()


def test_a_command_with_brackets_and_blanks_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    own = guardian._look_at(os.getpid())
    assert own.parent == os.getppid()
    assert (own.group, own.session) == (os.getpgrp(), os.getsid(0))
    numbers = " ".join(str(n) for n in range(1, 50))
    (tmp_path / "stat").write_text(f"5 (a) b (c)) R {numbers}")
    monkeypatch.setattr(guardian, "Path", lambda path: tmp_path / "stat")
    assert guardian._look_at(5) == guardian.Process(5, "R", 1, 2, 3, started=19)
