"""Handlers that start other tasks."""

from __future__ import annotations

from duetime.handlers import AsyncContext, Context, handler


@handler("fan-out")
def fan_out(context: Context, payload: dict[str, int]) -> list[str]:
    """Start the same `echo` tasks in each attempt; fail in the first attempts if `fail_times` is given."""
    made = [context.client.tasks.create("echo", payload={"part": part}).id for part in range(payload["parts"])]
    if context.attempt <= payload.get("fail_times", 0):
        raise ConnectionError("failed after the tasks were created")
    return made


@handler("fan-out.async")
async def fan_out_async(context: AsyncContext, payload: dict[str, int]) -> list[str]:
    """Do the same as `fan_out`, but in a coroutine."""
    tasks = context.client.tasks
    made = [(await tasks.create("echo", payload={"part": part})).id for part in range(payload["parts"])]
    if context.attempt <= payload.get("fail_times", 0):
        raise ConnectionError("failed after the tasks were created")
    return made
