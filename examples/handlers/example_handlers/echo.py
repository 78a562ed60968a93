"""Two minimal handlers."""

from __future__ import annotations

from typing import Any

from duetime.handlers import Context, Unretriable, handler


@handler("echo")
def echo(context: Context, payload: Any) -> dict[str, Any]:  # noqa: ANN401 (a payload is any JSON)
    """Return the payload, the task's id, and the attempt's number and fence."""
    return {"payload": payload, "task_id": context.task_id, "attempt": context.attempt, "fence": context.fence}


@handler("echo.refuse")
def refuse(context: Context, payload: Any) -> None:  # noqa: ANN401 (a payload is any JSON)
    """Fail permanently at the first attempt, without retries."""
    raise Unretriable(f"{context.type} refuses {payload!r}")
