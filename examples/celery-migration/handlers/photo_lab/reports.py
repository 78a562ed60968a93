"""The handler for the nightly report."""

from __future__ import annotations

from dataclasses import dataclass

from duetime.handlers import Context, handler

from photo_lab.services import SERVICES


@dataclass(frozen=True)
class Report:
    """The payload for `report.nightly`, which has the kind of report and the number of top entries."""

    kind: str
    top: int = 10


@handler("report.nightly", payload=Report, timeout_seconds=840, retry_on=())
async def nightly(context: Context, payload: Report) -> None:
    """Mail the report."""
    SERVICES.mail("boss@example.org", f"{payload.kind}: {len(SERVICES.charges)} orders, top {payload.top}")
