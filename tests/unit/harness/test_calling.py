"""Calling a recipe's functions by keyword, and what is said when they do not fit."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from perfkit_harness.calling import (
    Signature,
    as_keywords,
    call_with_case,
    require_fits,
    require_keywords_used,
    where_is,
)
from torch import nn

from perfkit.errors import PerfkitError
from perfkit.wire.spec import Case

_CPU = torch.device("cpu")


def _case(**values: Any) -> Case:
    return Case(name="tiny", values=values)


def _call(function: Any, **values: Any) -> Any:
    return call_with_case(function, case=_case(**values), device=_CPU, dtype=torch.float32)


class _Pair(nn.Module):
    def forward(self, x: torch.Tensor, scale: float = 1.0) -> torch.Tensor:
        return x * scale


def test_only_the_keywords_that_are_named_are_given() -> None:
    def build(*, dim: int, dtype: torch.dtype) -> tuple[int, torch.dtype]:
        return dim, dtype

    assert _call(build, dim=3, tokens=4) == (3, torch.float32)


def test_a_function_with_kwargs_gets_everything() -> None:
    def build(**kwargs: Any) -> Any:
        return kwargs

    assert _call(build, dim=3) == {"dim": 3, "device": _CPU, "dtype": torch.float32}


def test_a_missing_keyword_is_named_with_the_line_of_the_function() -> None:
    def build(*, dim: int, heads: int) -> None: ...

    with pytest.raises(
        PerfkitError, match=r"needs heads, and the case 'tiny' gives device, dim, dtype"
    ) as error:
        _call(build, dim=3)
    assert f"{__file__}:{build.__code__.co_firstlineno}" in error.value.what


def test_a_misspelt_case_keyword_is_refused_even_when_it_would_be_discarded() -> None:
    def build(*, heads: int = 2, **_: Any) -> None: ...
    def inputs(*, tokens: int, **_rest: Any) -> None: ...

    with pytest.raises(PerfkitError, match=r"gives 'haeds', which nothing takes.*did you mean heads"):
        require_keywords_used([build, inputs], case=_case(tokens=4, haeds=3))
    require_keywords_used([build, inputs], case=_case(tokens=4, heads=3))


def test_kwargs_that_are_used_take_every_keyword() -> None:
    def build(**config: Any) -> None: ...

    require_keywords_used([build], case=_case(anything=1))


def test_positional_only_parameters_are_refused() -> None:
    def build(dim: int, /) -> None: ...

    with pytest.raises(PerfkitError, match="by position only"):
        Signature.of(build)


@pytest.mark.parametrize("inputs", [torch.ones(2), (torch.ones(2),), {"x": torch.ones(2)}])
def test_inputs_become_keywords(inputs: Any) -> None:
    keywords = as_keywords(inputs, module=_Pair(), source="here")
    assert list(keywords) == ["x"]
    assert torch.equal(keywords["x"], torch.ones(2))


@pytest.mark.parametrize(
    ("inputs", "fault"),
    [
        ({"y": 1}, "does not take y"),
        ({}, "also needs x"),
        ((1, 2, 3), "returned 3 positional inputs"),
        ("text", "inputs of type str"),
        ({1: 2}, "inputs of type dict"),
    ],
)
def test_inputs_that_do_not_fit_are_refused(inputs: Any, fault: str) -> None:
    with pytest.raises(PerfkitError, match=fault):
        as_keywords(inputs, module=_Pair(), source="here")


def test_functions_methods_and_classes_are_located() -> None:
    assert where_is(_call).endswith(f"test_calling.py:{_call.__code__.co_firstlineno} _call")
    assert where_is(_Pair().forward).endswith("_Pair.forward")
    assert "test_calling.py:" in where_is(_Pair)
    assert where_is(len) == "len"


def test_a_reference_that_takes_other_names_is_refused() -> None:
    with pytest.raises(PerfkitError, match="does not take weight"):
        require_fits(lambda x: x, {"x": 1, "weight": 2}, source="recipe.py:3 inputs")
