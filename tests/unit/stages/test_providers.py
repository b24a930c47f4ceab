"""Providers that cannot run here are left out with a reason, or refused when they were asked for."""

from __future__ import annotations

import pytest

from perfkit.catalog import resolve
from perfkit.catalog.options import TargetOptions
from perfkit.errors import UsageError
from perfkit.stages.providers import usable_providers
from perfkit.stages.request import StageRequest


def usable(
    *, device: str = "cpu", timed: bool = True, asked: tuple[str, ...] | None = None
) -> tuple[tuple[str, ...], ...]:
    resolved = resolve("rms-norm", device=device, options=TargetOptions(providers=asked))
    request = StageRequest(target="rms-norm", providers=asked)
    return usable_providers(resolved, request, device=device, timed=timed)


def test_the_interpreter_is_not_timed_but_verified() -> None:
    timed, notes = usable()
    assert "target" not in timed
    assert any("interpreter" in note for note in notes)
    verified, _ = usable(timed=False)
    assert "target" in verified


def test_what_was_asked_for_is_never_left_out_silently() -> None:
    with pytest.raises(UsageError, match="target cannot be timed"):
        usable(asked=("target",))
    assert usable(asked=("target",), timed=False)[0] == ("target",)


def test_a_missing_or_gpu_only_library_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    providers, notes = usable(device="cuda:0")
    assert "liger" not in providers
    assert any("liger_kernel is not installed" in note for note in notes)
    with pytest.raises(UsageError, match="liger"):
        usable(device="cuda:0", asked=("liger",))
