"""What was raised in a child -> a Failure that names the user's own line."""

from __future__ import annotations

import sys
import sysconfig
import traceback
from collections.abc import Iterator
from pathlib import Path

from perfkit.wire.results import Failure

_LIBRARIES = ("torch", "triton")


def describe(error: BaseException) -> Failure:
    """The class, message, innermost line of the user's code and full traceback of an exception."""
    return Failure(
        kind=type(error).__name__,
        message=_sendable(_message(error)),
        where=_sendable(_where(error)),
        traceback=_sendable("".join(traceback.format_exception(error))),
    )


def _message(error: BaseException) -> str:
    if isinstance(error, SystemExit):
        return f"the target called sys.exit({error.code!r})"
    if isinstance(error, KeyboardInterrupt):
        return "the target raised KeyboardInterrupt"
    if isinstance(error, SyntaxError):
        return error.msg
    # `Kind: message`; unlike str(error) it survives an exception whose __str__ raises.
    return traceback.format_exception_only(error)[0].strip().partition(": ")[2]


def _where(error: BaseException) -> str:
    """`file.py:12 in build`, from the exception or else from the one that caused it; "" for none."""
    if isinstance(error, SyntaxError) and error.filename:
        return f"{Path(error.filename).name}:{error.lineno}"
    owners = _owners()
    for raised in _causes(error):
        for frame in reversed(traceback.extract_tb(raised.__traceback__)):
            if _is_users(frame.filename, owners):
                return f"{Path(frame.filename).name}:{frame.lineno} in {frame.name}"
    return ""


def _causes(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    raised: BaseException | None = error
    while raised is not None and id(raised) not in seen:
        seen.add(id(raised))
        yield raised
        raised = raised.__cause__ or raised.__context__


def _owners() -> dict[str, bool]:
    """Folder prefix -> whether frames below it are the user's; the longest prefix that fits decides."""
    perfkit = _folder("perfkit")
    standard = sysconfig.get_path("stdlib") + "/"
    owners = {
        "<": False,  # generated code
        standard: False,
        f"{standard}site-packages/": True,
        f"{standard}dist-packages/": True,
        perfkit: False,
        f"{perfkit}_bundled/recipes/": True,
        f"{Path(__file__).resolve().parent}/": False,
    }
    return owners | {_folder(name): False for name in _LIBRARIES if name in sys.modules}


def _folder(package: str) -> str:
    file = sys.modules[package].__file__
    return f"{Path(file).resolve().parent}/" if file else "<"


def _is_users(filename: str, owners: dict[str, bool]) -> bool:
    fitting = [prefix for prefix in owners if filename.startswith(prefix)]
    return owners[max(fitting, key=len)] if fitting else True


def _sendable(text: str) -> str:
    """The text without lone surrogates, which JSON cannot carry."""
    return text.encode("utf-8", "replace").decode("utf-8")
