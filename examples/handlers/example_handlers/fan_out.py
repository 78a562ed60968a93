"""Handlers that start other tasks."""

from __future__ import annotations

from duetime.handlers import AsyncContext, Context, handler


@handler("fan-out")
def fan_out(context: Context, payload: dict[str, int]) -> list[str]:
    """Create `parts` tasks of type `echo`, only once over all attempts; the first `fail_times` attempts then fail."""
    made = [context.client.tasks.create("echo", payload={"part": part}).id for part in range(payload["parts"])]
    if context.attempt <= payload.get("fail_times", 0):
        raise ConnectionError("failed after the tasks were created")
    return made


@handler("fan-out.async")
async def fan_out_async(context: AsyncContext, payload: dict[str, int]) -> list[str]:
    """Do the same as `fan_out` in a coroutine."""
    tasks = context.client.tasks
    made = [(await tasks.create("echo", payload={"part": part})).id for part in range(payload["parts"])]
    if context.attempt <= payload.get("fail_times", 0):
        raise ConnectionError("failed after the tasks were created")
    return made
