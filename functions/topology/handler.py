"""Does one state of the state machine that frames the runs of topologies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime.composition import composed
from duetime.domain.ids import TaskId

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext


def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001 - Lambda's signature
    """Do the state that the event names; what it raises is retried by the state machine."""
    inside = composed()
    running, topology, fence = inside.state_machine_steps, TaskId(event["task_id"]), int(event["fence"])
    try:
        match event["state"]:
            case "plan":
                plan = running.plan(topology, fence)
                return {"chunks": plan.chunks, "large": plan.is_large}
            case "wait":
                running.wait(topology, fence, int(event["number"]), event["token"])
            case "finish":
                look = running.finish(topology, fence)
                return {"state": look.state, "over": look.over, "again_after": look.again_after}
            case "break_off":
                running.break_off(topology, fence, str(event["reason"])[:200])
        return {}
    finally:
        inside.telemetry.flush()
