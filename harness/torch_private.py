"""Every torch-private hook that the harness uses, each behind a probe, with the versions it was seen on."""

from __future__ import annotations

import sys


def num_compiled_graphs() -> int:
    """Graphs that Dynamo has compiled in this process; 0 where Dynamo was never imported.

    `torch._dynamo.utils.counters["stats"]["unique_graphs"]`; seen on 2.11 and 2.13.
    """
    if "torch._dynamo" not in sys.modules:
        return 0
    from torch._dynamo.utils import counters

    return int(counters["stats"]["unique_graphs"])
