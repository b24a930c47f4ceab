"""Whole documents against golden files: PERFKIT_TEST_REFRESH=1 refreshes them, then read the diff."""

from __future__ import annotations

import dataclasses

from perfkit.report.comparison_md import comparison_md
from perfkit.report.findings_md import findings_md
from perfkit.report.model import Comparison, Findings, Profile
from perfkit.report.profile_md import profile_md
from perfkit.report.pull_request import pull_requests
from tests.support import report_data as data
from tests.support.golden import check_golden


def cpu_quick_findings() -> Findings:
    """A quick run on a CPU: two processes, no graphs, nothing verified yet."""
    conditions = dataclasses.replace(data.CPU, quick=True, num_processes=2)
    rows = tuple(
        dataclasses.replace(row, verdict="not verified" if row.ratio else "reference", verdict_reason="")
        for row in data.comparison(num=2).rows
        if row.launch == "launch" and row.case == "4k"
    )
    comparison = Comparison(conditions=conditions, baseline="eager", rows=rows)
    small = data.pieces()[:2]
    return Findings(
        conditions=conditions,
        comparison=comparison,
        changes=data.findings().changes,
        pieces=small,
        candidates=data.candidates(small),
        closures=data.closures(small),
    )


def test_profile_of_a_layer() -> None:
    check_golden("profile-layer.md", profile_md(data.profile()))


def test_profile_of_a_kernel() -> None:
    profile = Profile(conditions=data.KERNEL, providers=data.provider_rows(), peaks=data.profile().peaks)
    check_golden("profile-kernel.md", profile_md(profile))


def test_comparison() -> None:
    check_golden("comparison.md", comparison_md(data.comparison()))


def test_findings_of_a_layer() -> None:
    found = data.findings()
    files = tuple(f"pr/{pr.file_name}" for pr in pull_requests(found))
    check_golden("findings-layer.md", findings_md(found, plots=("plots/floors-4k.png",), pr_files=files))


def test_findings_of_a_kernel() -> None:
    check_golden("findings-kernel.md", findings_md(data.kernel_findings()))


def test_findings_of_a_quick_cpu_run_propose_nothing() -> None:
    found = cpu_quick_findings()
    assert pull_requests(found) == ()
    check_golden("findings-quick-cpu.md", findings_md(found))


def test_pull_request_of_a_tree() -> None:
    (request,) = pull_requests(data.findings())
    assert request.file_name == "01-compile-each-block.md"
    check_golden("pr-tree.md", request.text)


def test_pull_request_of_a_provider() -> None:
    (request,) = pull_requests(data.kernel_findings())
    check_golden("pr-provider.md", request.text)


def test_pull_request_of_a_variant() -> None:
    (request,) = pull_requests(data.variant_findings())
    assert request.file_name == "01-rewrite-rms-norm-triton-py.md"
    check_golden("pr-variant.md", request.text)
