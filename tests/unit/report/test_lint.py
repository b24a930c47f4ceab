"""Each writing rule catches a text that breaks it, and our own texts break none."""

from __future__ import annotations

import dataclasses

import pytest

from perfkit.report.lint import lint_pull_request
from perfkit.report.model import Findings, Piece
from perfkit.report.pull_request import pull_requests, slug
from tests.support import report_data as data

GOOD = """\
[larch][perf] Fuse the gate

**TLDR:** The gate runs as one kernel: 16k 41.00 -> 38.54 ms (-6.0%).

**Problem**

1. `Larch` mixes its output through a gate.
2. `GatedMix.forward` runs five ops.
3. Each op reads the whole stream.
4. Cost: 3.10 ms at 16k.

**Solution**

1. Run the five ops as one kernel.
2. They move to `gated_mix`.
3. The config enables it.
4. Left as it was: the gate's projection.

**Results**

```text
16k   41.00 -> 38.54 ms (-6.0%)
| code blocks may hold anything |
```

You may ask:

- why not the norm? A 2.7x slower backward, 2987 us against 1089.

**Test plan**

```text
pytest tests
```

<details open>
</details>
"""


def rules(text: str) -> set[str]:
    return {complaint.rule for complaint in lint_pull_request(text)}


def test_a_good_text_has_no_complaint() -> None:
    assert lint_pull_request(GOOD) == ()


@pytest.mark.parametrize(
    ("old", "new", "rule"),
    [
        ("[larch][perf] Fuse the gate", "Fuse the gate", "title"),
        ("16k 41.00 -> 38.54 ms (-6.0%).\n\n**P", "it is faster.\n\n**P", "tldr-number"),
        ("**Test plan**", "Tests", "sections"),
        ("3. Each op reads the whole stream.\n", "", "step-count"),
        ("2. They move", "3. They move", "step-count"),
        ("4. Cost: 3.10 ms at 16k.", "4. That is slow.", "cost"),
        ("4. Left as it was: the gate's projection.", "4. It is done.", "unchanged"),
        ("2. They move to `gated_mix`.", "2. They move and the config changes.", "one-fact"),
        ("2. They move to `gated_mix`.", "2. They move. Then they run.", "one-fact"),
        ("3. The config enables it.", "3. The config of #123 enables it.", "foreign"),
        ("3. The config enables it.", "3. See https://github.com/x/y.", "foreign"),
        ("3. The config enables it.", "3. It is ~2x slower.", "bare-ratio"),
        ("3. The config enables it.", "3. A ratio of 2.7x, 2987 us against 1089.", "bare-ratio"),
        ("You may ask:", "| a | b |", "table"),
        ("Fuse the gate", "Fuse the gate \u2192 one", "ascii"),
    ],
)
def test_each_rule_catches_what_breaks_it(old: str, new: str, rule: str) -> None:
    assert old in GOOD
    assert rule in rules(GOOD.replace(old, new, 1))


def test_seven_steps_are_too_many() -> None:
    more = "4. Cost: 3.10 ms at 16k.\n5. More.\n6. More.\n7. Cost: 3.10 ms."
    assert "step-count" in rules(GOOD.replace("4. Cost: 3.10 ms at 16k.", more))


@pytest.mark.parametrize("text", ["2048x4096", "`x2`", "16384x8192 takes 3 us", "index 3", "0x10"])
def test_shapes_are_no_ratios(text: str) -> None:
    assert rules(GOOD.replace("The config enables it.", f"Shape {text}.")) == set()


def test_complaints_name_their_line() -> None:
    (complaint,) = lint_pull_request(GOOD.replace("3. The config enables it.", "3. It is 2x slower."))
    assert GOOD.splitlines()[complaint.line - 1] == "3. The config enables it."
    assert str(complaint).startswith(f"line {complaint.line}: A ratio")


def bare(**changes: object) -> Findings:
    """Findings without any profile: only the comparison is known."""
    made = data.findings(matrix=(), pieces=(), candidates=(), closures=(), correctness=(), compile_limits=())
    return dataclasses.replace(made, **changes)  # type: ignore[arg-type]


def glue_without_floor() -> tuple[Piece, ...]:
    return tuple(dataclasses.replace(p, floor_us=None) for p in data.pieces())


@pytest.mark.parametrize(
    "found",
    [
        data.findings(),
        data.kernel_findings(),
        data.kernel_findings(providers=()),
        data.variant_findings(),
        bare(),
        bare(matrix=data.matrix()),
        bare(pieces=data.pieces()),
        bare(pieces=glue_without_floor()),
        bare(comparison=data.comparison(regions_verdict="PASS")),
        bare(conditions=dataclasses.replace(data.CPU, quick=True)),
        bare(changes=data.findings().changes[1:]),
        data.findings(comparison=data.comparison(num=2)),
        bare(
            comparison=data.comparison(regions_verdict="PASS"),
            changes=data.findings().changes[:1],
            matrix=data.matrix(),
        ),
    ],
)
def test_our_own_texts_break_no_rule(found: Findings) -> None:
    for request in pull_requests(found):
        assert [str(c) for c in lint_pull_request(request.text)] == []


def test_the_regions_tree_is_named_as_such() -> None:
    found = bare(comparison=data.comparison(regions_verdict="PASS"), changes=data.findings().changes[:1])
    (request,) = pull_requests(found)
    assert "Compile apply_rope, RMSNorm.forward alone" in request.title
    assert "Regions: `apply_rope`, `RMSNorm.forward`." in request.text


def test_two_processes_are_labelled_indicative() -> None:
    (request,) = pull_requests(data.findings(comparison=data.comparison(num=2)))
    tldr = next(line for line in request.text.splitlines() if line.startswith("**TLDR:**"))
    assert "(2 processes, indicative)" in tldr


def test_nothing_faster_means_no_text() -> None:
    assert pull_requests(data.findings(changes=())) == ()
    assert pull_requests(data.findings(comparison=data.comparison(num=1))) == ()


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Compile each Block", "compile-each-block"),
        ("  Rewrite a/b.py!  ", "rewrite-a-b-py"),
        ("", "change"),
        ("word " * 30, "word-word-word-word-word-word-word-word"),
        ("x" * 90, "x" * 40),
    ],
)
def test_slugs(text: str, expected: str) -> None:
    assert slug(text) == expected
