"""First file of the process that computes baselines: loads the packages as bootstrap.py does."""

from __future__ import annotations

import importlib
import runpy
import sys
from pathlib import Path


def main() -> None:
    """Reads the arguments, and hides them from code that parses sys.argv on import."""
    given = dict(argument.split("=", 1) for argument in sys.argv[1:])
    del sys.argv[1:]
    folder = Path(__file__).resolve().parent
    load_package = runpy.run_path(str(folder / "bootstrap.py"), run_name="bootstrap")["load_package"]
    load_package("perfkit_harness", folder)
    load_package("perfkit", Path(given["perfkit"]))
    importlib.import_module("perfkit_harness.aside").main(Path(given["folder"]))


if __name__ == "__main__":
    main()
