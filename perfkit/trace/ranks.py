"""Which rank a trace belongs to, and the order in which ranks are stacked."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import msgspec

from perfkit.errors import PerfkitError, UsageError
from perfkit.trace.document import Document

PIPELINE_GROUP_NAME = "torchtitan_real_pp"
PIPELINE_GROUP_DESCRIPTION = "mesh_pp"
GLOBAL_RANK = "global rank"
"""Source of the order when no pipeline group is recorded: right only if pipelines are laid out that way."""
_RANK_IN_NAME = re.compile(r"rank[_-]?(\d+)")
_LAST_NUMBER = re.compile(r"(\d+)(?!.*\d)")


def distributed_info(document: Document) -> dict[str, Any]:
    """The process group record of a trace; empty without one."""
    raw = document.header.get("distributedInfo")
    value = msgspec.json.decode(raw) if raw else {}
    return value if isinstance(value, dict) else {}


def rank_of(document: Document) -> int:
    """Global rank: what the trace says, else the number in its file name.

    Raises:
        PerfkitError: the trace and a file name like `rank3_trace` disagree.
        UsageError: neither says anything.
    """
    path = document.path
    said = distributed_info(document).get("rank")
    named = _RANK_IN_NAME.search(path.name)
    if isinstance(said, int):
        if named and int(named[1]) != said:
            raise PerfkitError(
                f"Cannot tell the rank of {path}.",
                why=f"Its name says {int(named[1])}, the trace itself says {said}.",
                do="Rename the file.",
            )
        return said
    number = named or _LAST_NUMBER.search(path.name)
    if number is None:
        raise UsageError(
            f"Cannot tell the rank of {path}.",
            why="Neither the trace nor the file name has a rank.",
            do="Name the files rank0_trace.json, rank1_trace.json and so on.",
        )
    return int(number[1])


def pipeline_order(documents: Mapping[int, Document]) -> tuple[list[int], str]:
    """Ranks from top to bottom, and where the order comes from."""
    for document in documents.values():
        for group in distributed_info(document).get("pg_config", []):
            ranks = group.get("ranks") if isinstance(group, dict) else None
            if not isinstance(ranks, list) or not set(documents) <= set(ranks):
                continue
            if group.get("pg_name") == PIPELINE_GROUP_NAME:
                return [r for r in ranks if r in documents], f"process group {PIPELINE_GROUP_NAME}"
            if group.get("pg_desc") == PIPELINE_GROUP_DESCRIPTION:
                return [r for r in ranks if r in documents], f"process group {PIPELINE_GROUP_DESCRIPTION}"
    return sorted(documents), GLOBAL_RANK
