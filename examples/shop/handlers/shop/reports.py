"""The nightly report: one for each local date, also in the nights in which the clocks change."""

from __future__ import annotations

from zoneinfo import ZoneInfo

from duetime.handlers import Context, handler

LONDON = ZoneInfo("Europe/London")


@handler("report")
def report(context: Context, payload: dict[str, str]) -> dict[str, str]:
    """Report the day that ended this night: it follows from the due time of the task, not from the time of the run."""
    assert context.due_at is not None, "a context that a test has made may lack it"
    local = context.due_at.astimezone(LONDON)
    return {"night": local.date().isoformat(), "at": local.strftime("%H:%M %Z")}
