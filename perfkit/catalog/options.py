"""What a command line may say about a target: which cases, trees and providers, and tables of its own."""

from __future__ import annotations

import msgspec

from perfkit.wire.spec import CheckpointMode, TreeName


class TargetOptions(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Options that only make sense beside a target. None (or empty) means: not stated, the target decides.

    A struct, so that an effort can keep it and resolve the same target again later.
    """

    cases: tuple[str, ...] | None = None
    """Names that select among the target's cases."""
    case_tables: tuple[str, ...] = ()
    """`tokens=4096,dim=256` or `big:tokens=4096`; they take the place of the declared cases."""
    blocks: tuple[str, ...] | None = None
    regions: tuple[str, ...] | None = None
    trees: tuple[TreeName, ...] | None = None
    checkpoint: CheckpointMode | None = None
    providers: tuple[str, ...] | None = None
