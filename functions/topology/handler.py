"""Runs one state of the state machine for topologies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime.composition import composed, prepare
from duetime.composition.tasks import TopologyServices
from duetime.domain.ids import TaskId

if TYPE_CHECKING:
    from aws_lambda_powertools.utilities.typing import LambdaContext


def handler(event: dict[str, Any], context: LambdaContext) -> dict[str, Any]:  # noqa: ARG001 - Lambda's signature
    """Run the state named in the event. If the function fails, the state machine retries the state."""
    if (region := composed().region) is not None:
        # The other Region takes over the topology's task, and continues it in another execution.
        region.check()
    running = composed(TopologyServices).state_machine_steps
    topology, fence = TaskId(event["task_id"]), int(event["fence"])
    try:
        match event["state"]:
            case "plan":
                plan = running.plan(topology, fence)
                return {"chunks": plan.chunks, "large": plan.is_large, "looks": 0}
            case "wait":
                running.wait(topology, fence, int(event["number"]), event["token"])
            case "finish":
                looks = int(event["looks"])
                look = running.finish(topology, fence, looks)
                again_after = look.again_after
                return {"state": look.state, "over": look.over, "again_after": again_after, "looks": looks + 1}
            case "break_off":
                running.break_off(topology, fence, str(event["reason"])[:200])
        return {}
    finally:
        composed().telemetry.flush()


prepare(lambda: composed(TopologyServices).state_machine_steps)
