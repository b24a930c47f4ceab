"""findings.md: what was measured, what it says, what was rejected and what nobody tested."""

from __future__ import annotations

from perfkit.report.blocks import change_lines, summary_block
from perfkit.report.model import Candidate, Change, Closure, Findings, Piece
from perfkit.report.pairs import best_change, launched, pairs
from perfkit.report.ranking import headline_rows, may_rank
from perfkit.report.render import render
from perfkit.report.words import QUICK, conclusion, hole_text, plural
from perfkit.stats import format_percent, format_ratio, format_us

NUM_CANDIDATES = 5
_CUT = ("gemm", "attention", "collective", "opaque")


def findings_md(findings: Findings, *, plots: tuple[str, ...] = (), pr_files: tuple[str, ...] = ()) -> str:
    """The document, in a fixed order; a part without entries says `none`.

    Args:
        plots: paths of the plots relative to the document.
        pr_files: paths of the pull request texts relative to the document.
    """
    best = best_change(findings)
    conditions = findings.conditions
    return render(
        "findings.md.j2",
        title=f"{conditions.target}: local {'compile' if conditions.kind == 'layer' else 'kernel'} results",
        quick=QUICK if conditions.quick else "",
        summary=summary_block(findings, best),
        verdict=verdict_line(findings, best),
        where=where_lines(findings),
        rejected=rejected_lines(findings, best),
        compile_limits=findings.compile_limits,
        not_tested=not_tested_lines(findings),
        feedback=findings.feedback,
        plots=plots,
        pr_files=pr_files,
    )


def verdict_line(findings: Findings, best: Change | None) -> str:
    """One sentence: what to do now."""
    baseline = findings.comparison.baseline
    if best is not None:
        main = "; ".join(
            line.strip() for line in change_lines(launched(pairs(findings, best.subject)), indent="")
        )
        return f"{best.subject} is verified and faster than {baseline}: {' '.join(main.split())}."
    least = min((r.time.num_processes for r in findings.comparison.rows if r.time), default=0)
    more = " Fewer than 3 processes prove little; run with --replicates 3 or more." if 0 < least < 3 else ""
    nothing = f"Nothing that passed verification is proven faster than {baseline}"
    return f"{nothing}, so there is no change to propose.{more}"


def where_lines(findings: Findings) -> list[str]:
    """Where the step's time goes, per case: totals against floors, then the largest candidates."""
    lines: list[str] = []
    for case in dict.fromkeys(p.case for p in findings.pieces):
        pieces = [p for p in findings.pieces if p.case == case]
        closure = next((c for c in findings.closures if c.case == case), None)
        if findings.conditions.kind == "kernel":
            lines += [_pass_line(piece) for piece in pieces]
            continue
        lines += [_total_line(case, pieces, closure, on_gpu=findings.conditions.on_gpu)]
        for words, kinds in (("matrix products, attention, opaque calls", _CUT), ("glue", ("glue",))):
            lines += _kind_line(words, [p for p in pieces if p.kind in kinds])
        lines += [_candidate_line(c) for c in _largest(findings, case)]
    return lines + _provider_lines(findings)


def rejected_lines(findings: Findings, best: Change | None) -> list[str]:
    """Ideas measured and not kept: stated ones first, then every subject that lost or failed."""
    lines = [
        " ".join(f"{r.idea}: {r.number}{', ' if r.number else ''}{r.why}".split()) for r in findings.rejected
    ]
    for row in headline_rows(findings.comparison.rows):
        stated = any(r.idea.startswith(f"{row.subject}:") for r in findings.rejected)
        if row.ratio is None or stated or (best is not None and row.subject == best.subject):
            continue
        if row.verdict == "FAIL":
            lines.append(
                f"{row.subject}, {row.case}: failed verification, {row.verdict_reason or 'see verify'}"
            )
        elif may_rank(row) and row.ratio.low is not None and not row.ratio.smaller:
            lines.append(
                f"{row.subject}, {row.case}: {_pair_text(findings, row.subject, row.case)}, {conclusion(row)}"
            )
    return lines


def not_tested_lines(findings: Findings) -> list[str]:
    """Stated gaps, those of every single-device effort, then those that the data itself shows."""
    lines = list(findings.not_tested)
    rows = findings.comparison.rows
    if not findings.conditions.on_gpu:
        lines.append("any GPU: all numbers are of this CPU")
    if findings.conditions.kind == "layer":
        lines.append("loss curve of a training run")
    lines.append("more than one device")
    lines += [
        f"whether {row.subject} is faster at {row.case}: one process shows no spread"
        for row in headline_rows(rows)
        if row.verdict != "FAIL" and row.ratio is not None and row.ratio.low is None
    ]
    for subject in dict.fromkeys(r.subject for r in rows if r.verdict in ("not verified", "INCONCLUSIVE")):
        reason = next(r.verdict_reason for r in rows if r.subject == subject)
        lines.append(f"correctness of {subject}: {reason or 'not verified'}")
    for row in findings.matrix:
        if row.wall is None:
            lines.append(f"{row.subject}, {row.case}, {row.launch}: {hole_text(row.fate, row.reason)}")
    return lines


def _total_line(case: str, pieces: list[Piece], closure: Closure | None, *, on_gpu: bool) -> str:
    word = "kernels" if on_gpu else "ops"
    if closure is None or not closure.total_us:
        total = format_us(sum(p.measured_us for p in pieces))
        return f"{case}: {total} of {word} in {plural(len(pieces), 'piece')}"
    open_share = format_percent(closure.unattributed_us / closure.total_us)
    return f"{case}: {format_us(closure.total_us)} of {word}, {open_share} unattributed"


def _pass_line(piece: Piece) -> str:
    """One pass of a kernel: `2048x4096, target backward: 19.7 us of kernels, floor 11.5 us (1.7x)`."""
    text = f"{piece.case}, {piece.name}: {format_us(piece.measured_us)} of kernels"
    if not piece.floor_us:
        return text
    return f"{text}, floor {format_us(piece.floor_us)} ({format_ratio(piece.measured_us / piece.floor_us)})"


def _kind_line(words: str, pieces: list[Piece]) -> list[str]:
    if not pieces:
        return []
    known = [p for p in pieces if p.floor_us is not None]
    text = f"  {plural(len(pieces), 'piece')} of {words}: {format_us(sum(p.measured_us for p in pieces))}"
    if known:
        text += f", floor {format_us(sum(p.floor_us or 0.0 for p in known))}"
        text += "" if len(known) == len(pieces) else f" (of {len(known)} with a floor)"
    # A cut op alone is its own unfused floor.
    glue = [p for p in pieces if p.kind == "glue"]
    unfused = [p.unfused_floor_us for p in glue if p.unfused_floor_us is not None]
    return [f"{text}, unfused {format_us(sum(unfused))}" if unfused else text]


def _largest(findings: Findings, case: str) -> list[Candidate]:
    of_case = [c for c in findings.candidates if c.piece.case == case and c.worthwhile]
    return sorted(of_case, key=lambda c: c.rank)[:NUM_CANDIDATES]


def _candidate_line(candidate: Candidate) -> str:
    piece = candidate.piece
    floor = "" if piece.floor_us is None else f", floor {format_us(piece.floor_us)}"
    gain = f"gain {format_us(candidate.gain_us)} ({format_percent(candidate.share)} of the step)"
    return f"  {candidate.rank}. {piece.where}, {piece.phase}: {format_us(piece.measured_us)}{floor}, {gain}"


def _provider_lines(findings: Findings) -> list[str]:
    """Kernel targets: each provider's share of the peak and what bounds it, as launched."""
    lines = []
    rows = [r for r in findings.providers if r.launch == "launch" and r.direction == "full" and r.evidence]
    caches = {row.cache for row in rows}
    for row in rows:
        if row.time is None or row.cache != ("cold" if "cold" in caches else "warm"):
            continue
        lines.append(f"{row.case}, {row.provider}, {row.cache}: {row.bottleneck} ({'; '.join(row.evidence)})")
    return lines


def _pair_text(findings: Findings, subject: str, case: str) -> str:
    found = [pair for pair in launched(pairs(findings, subject)) if pair.case == case]
    return " ".join(change_lines(found, indent="")[0].split()[1:]) if found else "no number"
