"""The command line that repeats a session's measurements."""

from __future__ import annotations

import shlex

from perfkit.stages.session import DEFAULT_REPLICATES, Session


def repeat_command(session: Session) -> str:
    """`perfkit investigate ...` with every option that differs from its default."""
    request, options = session.request, session.resolved.options
    words = [
        "perfkit",
        "investigate",
        session.resolved.text,
        "--device",
        session.device,
        "--dtype",
        session.dtype,
    ]
    lists = {
        "--cases": options.cases,
        "--trees": options.trees,
        "--blocks": options.blocks,
        "--regions": options.regions,
        "--providers": options.providers,
    }
    for flag, values in lists.items():
        if values is not None:
            words += [flag, ",".join(values)]
    for table in options.case_tables:
        words += ["--case", table]
    if options.checkpoint is not None:
        words += ["--ac", options.checkpoint]
    if request.quick:
        words.append("--quick")
    if session.replicates != (1 if request.quick else DEFAULT_REPLICATES):
        words += ["--replicates", str(session.replicates)]
    if session.measure.fp32_precision != "ieee":
        words += ["--fp32-precision", session.measure.fp32_precision]
    if session.measure.seed:
        words += ["--seed", str(session.measure.seed)]
    return shlex.join(words)
