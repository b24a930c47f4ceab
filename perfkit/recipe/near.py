"""Near matches for a name that does not exist."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_CUTOFF = 0.6
"""difflib's own default: `lama3-blok` still finds `llama3-block`, `attention` does not find `rms-norm`."""


def near_matches(name: str, known: Iterable[str], *, cutoff: float = _CUTOFF) -> tuple[str, ...]:
    """Up to three of `known` that resemble `name`, best first; case does not count."""
    by_folded = {item.lower(): item for item in known}
    found = difflib.get_close_matches(name.lower(), by_folded, n=3, cutoff=cutoff)
    return tuple(by_folded[item] for item in found)


def did_you_mean(name: str, known: Iterable[str], *, otherwise: str) -> str:
    """`Did you mean x or y?`, or the sentence `otherwise` when nothing comes near."""
    matches = near_matches(name, known)
    return f"Did you mean {' or '.join(matches)}?" if matches else otherwise


def listed(names: Iterable[str]) -> str:
    """`a, b, c`, or `none`."""
    return ", ".join(names) or "none"
