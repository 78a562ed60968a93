"""The handler for the nightly report, which makes one report for each local date, even when the clocks change."""

from __future__ import annotations

from zoneinfo import ZoneInfo

from duetime.handlers import Context, handler

LONDON = ZoneInfo("Europe/London")


@handler("report")
def report(context: Context, payload: dict[str, str]) -> dict[str, str]:
    """Report on the night given by the task's due time, because the attempt can run much later."""
    assert context.due_at is not None, "a context that a test has made may lack it"
    local = context.due_at.astimezone(LONDON)
    return {"night": local.date().isoformat(), "at": local.strftime("%H:%M %Z")}
