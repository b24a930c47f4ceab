"""The innermost line of the user's code that is running."""

from __future__ import annotations

import functools
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import torch
import torch.utils.checkpoint

_HARNESS = str(Path(__file__).resolve().parent) + "/"
_FUNCTION_FILE = str(torch.autograd.function.__file__)
_CHECKPOINT_FILE = str(torch.utils.checkpoint.__file__)
_LIBRARIES = ("torch", "triton", "perfkit")


def user_line() -> str:
    """`file.py:41 apply_rope` of the innermost frame outside torch, Triton, the harness and Python's own
    library; "" when there is none, as for what the harness computes itself (the loss).

    The walk ends where user code was called from the harness, so that nothing above it is blamed.
    """
    frame: FrameType | None = sys._getframe(1)
    left_harness = False
    while frame is not None:
        file = frame.f_code.co_filename
        if file.startswith(_HARNESS):
            if left_harness:
                return ""
        elif is_users(file):
            return f"{Path(file).name}:{frame.f_lineno} {frame.f_code.co_qualname}"
        elif not file.startswith("<"):
            left_harness = True
        frame = frame.f_back
    return ""


def in_function_of_checkpoint() -> bool:
    """Whether the forward of an autograd.Function is running for a checkpoint of torch.

    Asked inside backward with grad disabled, where it tells a recompute from a Function's backward.
    """
    in_forward = False
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if code.co_filename == _FUNCTION_FILE:
            if not code.co_qualname.startswith("Function."):
                return False
            in_forward = True
        elif code.co_filename == _CHECKPOINT_FILE:
            return in_forward
        frame = frame.f_back
    return False


def owners() -> Iterator[int]:
    """Identities of the objects whose methods are running, innermost first."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        names = frame.f_code.co_varnames
        if frame.f_code.co_argcount and names[0] == "self" and "self" in frame.f_locals:
            yield id(frame.f_locals["self"])
        frame = frame.f_back


@functools.cache
def is_users(file: str) -> bool:
    """Whether a file is the user's; the longest folder that fits decides."""
    fitting = [folder for folder in _folders() if file.startswith(folder)]
    return _folders()[max(fitting, key=len)] if fitting else True


@functools.cache
def _folders() -> dict[str, bool]:
    standard = sysconfig.get_path("stdlib") + "/"
    perfkit = _folder("perfkit")
    owners = {
        "<": False,
        standard: False,
        f"{standard}site-packages/": True,
        f"{standard}dist-packages/": True,
        _HARNESS: False,
    }
    owners |= {_folder(name): False for name in _LIBRARIES if name in sys.modules}
    return owners | {f"{perfkit}_bundled/recipes/": True}


def _folder(package: str) -> str:
    file = sys.modules[package].__file__
    return f"{Path(file).resolve().parent}/" if file else "<"
