"""The first file of every child: forks the guardian, then loads the harness and hands over to it.

Run as `python -P bootstrap.py name=value ...` by perfkit/launch. The harness folder is loaded under the
name `perfkit_harness`, and perfkit from the folder that the parent runs from, so that neither a user's
own `harness` nor another installed perfkit can take their place. sys.path is left as it was.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import sys
from pathlib import Path


def load_package(name: str, folder: Path) -> None:
    """Puts a folder into sys.modules as the package `name`.

    It is registered before it is executed: dataclasses look their own module up there.
    """
    spec = importlib.util.spec_from_file_location(
        name, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    if spec is None or spec.loader is None:
        raise ImportError(f"{folder} is not a package")
    package = importlib.util.module_from_spec(spec)
    sys.modules[name] = package
    spec.loader.exec_module(package)


def main() -> None:
    """Reads the arguments, and hides them from code that parses sys.argv on import."""
    given = dict(argument.split("=", 1) for argument in sys.argv[1:])
    del sys.argv[1:]
    result_fd = int(given["result_fd"])
    for name in ("result_fd", "lifeline_fd", "all_clear_fd"):
        os.set_inheritable(int(given[name]), False)
    load_package("perfkit_harness", Path(__file__).resolve().parent)
    importlib.import_module("perfkit_harness.guardian").start(
        lifeline_fd=int(given["lifeline_fd"]),
        all_clear_fd=int(given["all_clear_fd"]),
        other_fd=result_fd,
        marker=given["marker"].encode(),
        scratch=given["scratch"],
    )
    load_package("perfkit", Path(given["perfkit"]))
    slot_dir = Path(given["slot_dir"])
    importlib.import_module("perfkit_harness.child").main(slot_dir=slot_dir, result_fd=result_fd)


if __name__ == "__main__":
    main()
