"""The line of conditions that stands above every number of a document."""

from __future__ import annotations

from collections.abc import Iterable

from perfkit.report.model import Conditions
from perfkit.stages.session import Session
from perfkit.wire.results import SlotRecord


def conditions_of(
    session: Session, records: Iterable[SlotRecord], *, num_processes: int | None = None
) -> Conditions:
    """Conditions as the children found them; what no child told comes from the session."""
    records = [record for record in records if record.result.environment is not None]
    newest = max(records, key=lambda record: record.result.started_at, default=None)
    environment = newest.result.environment if newest is not None else None
    on_cpu = session.device == "cpu"
    return Conditions(
        target=session.target.name,
        kind=session.target.kind,
        device=session.device,
        device_name=session.versions["device"],
        dtype=session.dtype,
        torch=environment.torch if environment else session.versions["torch"],
        triton=environment.triton if environment else session.versions["triton"],
        num_processes=num_processes or session.replicates,
        checkpoint=session.measure.checkpoint,
        fp32_precision=environment.fp32_precision if environment else session.measure.fp32_precision,
        driver=session.versions.get("driver", ""),
        num_threads=environment.num_threads if environment and on_cpu else None,
        quick=session.measure.quick,
        date=newest.result.started_at[:10] if newest is not None else "",
    )
