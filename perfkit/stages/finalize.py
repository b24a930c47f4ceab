"""finalize: findings.md, the PR texts and the plots, from what the effort has recorded."""

from __future__ import annotations

from pathlib import Path

from perfkit.effort import Effort
from perfkit.report.findings_md import findings_md, verdict_line
from perfkit.report.lint import lint_pull_request
from perfkit.report.model import Findings
from perfkit.report.pairs import best_change
from perfkit.report.plots import floors_png, providers_png, variants_png
from perfkit.report.pull_request import pull_requests
from perfkit.stages.answer import StageReport
from perfkit.stages.bench import write_comparison
from perfkit.stages.evidence import findings_of
from perfkit.stages.peaks import kept_peaks, peaks_of
from perfkit.stages.plans import plan_bench
from perfkit.stages.request import StageRequest
from perfkit.stages.running import Say, dry_run, opened
from perfkit.stages.session import Session, nothing_recorded, prepare_recorded
from perfkit.stages.slots import planned_records
from perfkit.stages.tables import comparison_table


def run(request: StageRequest, *, say: Say) -> StageReport:
    """Writes the report of what is recorded; measures nothing.

    Raises:
        PerfkitError: nothing is recorded to report yet.
    """
    session = prepare_recorded(request, earlier="bench")
    if request.dry_run:
        return dry_run((), session=session)
    with opened(session, say=say) as effort:
        return finalize(session, effort=effort, say=say)


def finalize(session: Session, *, effort: Effort, say: Say) -> StageReport:
    """Writes pr/, plots/ and findings.md, and brings comparison.md up to date with the verdicts."""
    if not planned_records(plan_bench(session), effort=effort, session=session.key):
        raise nothing_recorded(effort.folder, session.resolved.text, earlier="bench")
    recorded = session.recorded is not None
    peaks = kept_peaks(effort) if recorded else peaks_of(session, effort=effort, say=say)
    findings = findings_of(session, effort=effort, peaks=peaks)
    plots = _write_plots(findings, effort)
    texts, complaints = _write_pull_requests(findings, effort)
    path = effort.folder / "findings.md"
    before = path.read_text() if path.is_file() else ""
    report = findings_md(
        findings,
        plots=tuple(str(path.relative_to(effort.folder)) for path in plots),
        pr_files=tuple(str(path.relative_to(effort.folder)) for path in texts),
    )
    files = [
        effort.write("findings.md", report),
        *write_comparison(findings.comparison, effort),
        *texts,
        *plots,
    ]
    headline = verdict_line(findings, best_change(findings))
    if report != before:
        effort.note("Finalized", headline)
    return StageReport(
        headline=headline,
        tables=(comparison_table(findings.comparison),),
        document={"effort": str(effort.folder), "headline": headline, "files": [str(path) for path in files]},
        files=tuple(files),
        warnings=complaints,
    )


def _write_plots(findings: Findings, effort: Effort) -> list[Path]:
    pngs: dict[str, bytes | None] = {
        f"floors-{case}.png": floors_png(findings.pieces, conditions=findings.conditions, case=case)
        for case in dict.fromkeys(piece.case for piece in findings.pieces)
    }
    pngs["variants.png"] = variants_png(findings.comparison)
    pngs["providers.png"] = providers_png(findings.providers, conditions=findings.conditions)
    return [effort.write(f"plots/{name}", data) for name, data in pngs.items() if data is not None]


def _write_pull_requests(findings: Findings, effort: Effort) -> tuple[list[Path], tuple[str, ...]]:
    """The texts, without those of an earlier finalize whose change is no longer the best."""
    for old in sorted((effort.folder / "pr").glob("*.md")):
        old.unlink()
    paths, complaints = [], []
    for request in pull_requests(findings):
        path = effort.write(f"pr/{request.file_name}", request.text)
        paths.append(path)
        complaints += [f"{path}: {complaint}" for complaint in lint_pull_request(request.text)]
    return paths, tuple(complaints)
