"""Which Triton kernels were launched: torch's own instruments do not see them.

The launch methods are Triton's, not torch's. `JITFunction.run` serves compiled kernels,
`InterpretedFunction.run` the interpreter; seen on Triton 3.6 and 3.9.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import Any

_LAUNCHERS = (
    ("triton.runtime.jit", "JITFunction"),
    ("triton.runtime.interpreter", "InterpretedFunction"),
)


@contextlib.contextmanager
def watch_launches() -> Iterator[dict[str, None]]:
    """Names of the Triton kernels launched inside, in order of first launch.

    Kernels that Inductor generated are not among them, they have launchers of their own. Triton must be
    imported before, as a target that uses it has done.
    """
    launched: dict[str, None] = {}
    with contextlib.ExitStack() as stack:
        for module, name in _LAUNCHERS:
            launcher = getattr(sys.modules.get(module), name, None)
            if launcher is not None:
                stack.callback(setattr, launcher, "run", launcher.run)
                launcher.run = _watched(launcher.run, launched)
        yield launched


def _watched(run: Callable[..., Any], launched: dict[str, None]) -> Callable[..., Any]:
    def watched(self: Any, *args: Any, **kwargs: Any) -> Any:
        launched[getattr(self.fn, "__name__", str(self.fn))] = None
        return run(self, *args, **kwargs)

    return watched
