"""An exception -> the Failure that a child sends."""

from __future__ import annotations

import importlib
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from perfkit.wire.codec import decode, encode
from perfkit.wire.results import Failure
from tests.support.harness import load_harness

load_harness()
describe = importlib.import_module("perfkit_harness.failures").describe


def _caught(function: Any, *arguments: Any) -> Failure:
    try:
        function(*arguments)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is described
        return describe(error)
    raise AssertionError("nothing was raised")


def _recipe(folder: Path, text: str) -> ModuleType:
    file = folder / "my_recipe.py"
    file.write_text(text)
    module = ModuleType("my_recipe")
    exec(compile(text, str(file), "exec"), module.__dict__)
    return module


def test_the_users_line_is_named_even_when_a_library_raised(tmp_path: Path) -> None:
    recipe = _recipe(tmp_path, "import json\n\ndef build():\n    return json.loads('{')\n")
    failure = _caught(recipe.build)
    assert failure.where == "my_recipe.py:4 in build"
    assert failure.kind == "JSONDecodeError"
    assert "json/decoder.py" in failure.traceback


def test_the_users_line_is_found_through_the_cause(tmp_path: Path) -> None:
    recipe = _recipe(tmp_path, "def build():\n    raise KeyError('dim')\n")
    failures = importlib.import_module("perfkit_harness.failures")
    try:
        try:
            recipe.build()
        except KeyError as error:
            raise RuntimeError("the library gave up") from error.with_traceback(error.__traceback__)
    except RuntimeError as error:
        chained = error.with_traceback(None)
    assert failures.describe(chained).where == "my_recipe.py:2 in build"


def test_a_syntax_error_is_named_by_its_file_and_line() -> None:
    failure = _caught(compile, "x = 1\nif:\n", "/home/me/recipe.py", "exec")
    assert (failure.kind, failure.where) == ("SyntaxError", "recipe.py:2")
    assert "invalid syntax" in failure.message


@pytest.mark.parametrize(
    ("error", "message"),
    [
        (ValueError("two: colons: kept"), "two: colons: kept"),
        (ValueError("several\nlines"), "several\nlines"),
        (ValueError(), ""),
        (SystemExit(3), "the target called sys.exit(3)"),
        (SystemExit("text"), "the target called sys.exit('text')"),
        (KeyboardInterrupt(), "the target raised KeyboardInterrupt"),
    ],
)
def test_messages(error: BaseException, message: str) -> None:
    assert describe(error).message == message


def test_notes_do_not_replace_the_message() -> None:
    error = ValueError("the message")
    error.add_note("a note")
    assert describe(error).message == "the message"
    assert "a note" in describe(error).traceback


class _HostileError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text for you")


def test_an_exception_that_cannot_be_printed_is_described() -> None:
    failure = describe(_HostileError())
    assert failure.kind == "_HostileError"
    assert "str() failed" in failure.message


def test_what_json_cannot_carry_is_replaced() -> None:
    failure = describe(ValueError("bad name \udcff"))
    assert decode(encode(failure), Failure) == failure
    assert json.loads(encode(failure))["message"] == "bad name ?"


def test_an_endless_chain_of_causes_ends() -> None:
    first, second = ValueError("a"), ValueError("b")
    first.__cause__, second.__cause__ = second, first
    assert describe(first).where == ""


@pytest.mark.parametrize(
    ("file", "is_users"),
    [
        ("/opt/torch/nn/module.py", False),
        ("/opt/torchtitan/model.py", True),
        ("/lib/python3/json/decoder.py", False),
        ("/lib/python3/site-packages/liger_kernel/ops.py", True),
        ("/lib/python3/site-packages/perfkit/wire/codec.py", False),
        ("/lib/python3/site-packages/perfkit/_bundled/recipes/layers/block.py", True),
        ("<eval_with_key>.3", False),
        ("/home/me/model.py", True),
    ],
)
def test_the_longest_prefix_decides_whose_a_frame_is(file: str, is_users: bool) -> None:
    owners = {
        "<": False,
        "/lib/python3/": False,
        "/lib/python3/site-packages/": True,
        "/lib/python3/site-packages/perfkit/": False,
        "/lib/python3/site-packages/perfkit/_bundled/recipes/": True,
        "/opt/torch/": False,
    }
    assert importlib.import_module("perfkit_harness.failures")._is_users(file, owners) is is_users
