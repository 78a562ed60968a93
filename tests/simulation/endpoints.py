"""What lies outside AWS in a simulated account: HTTP endpoints that tasks call, and those that are told of outcomes."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.adapters.targets.aws_target import AwsRunner
from duetime.adapters.targets.http_messages import EGRESS_FAILED, TIMEOUT, HttpResponse, NoResponse
from duetime.domain.times import SECOND
from duetime.handlers import Accepted

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.adapters.targets.http_messages import Call, Reply
    from duetime.domain.tasks.attempt_results import TargetEnding
    from duetime.domain.tasks.targets import AwsTarget
    from duetime.domain.tasks.task import Task
    from tests.simulation.machines import Machine

URL = "https://worker.example.org/do"
CALLBACK_URL = "https://hooks.example.org/ended"
NOTICE_URL = "https://hooks.example.org/notices"
SINK = "arn:aws:sqs:us-east-1:123456789012:sink"
"""A queue that tasks send messages to."""
SINK_URL = "https://sqs.us-east-1.amazonaws.com/123456789012/sink"


@dataclass(frozen=True)
class Asked:
    """What an endpoint knows of the attempt that calls it; it cannot be asked to stop.

    Attributes:
        requested_action: always nothing; handlers are told here what their user asks of them.
    """

    task_id: str
    fence: int
    requested_action: None = None


class SimulatedCaller:
    """Makes HTTP calls to endpoints that keep to their deadline; calls and their answers get lost now and then."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def call(self, call: Call) -> Reply:
        """Make a call."""
        machine, account = self._machine, self._machine.account
        machine.live()
        account.travel()
        draw = account.random.random()
        if draw < account.rate:
            account.count("egress refused")
            return NoResponse(EGRESS_FAILED, "the call could not be handed on: TooManyRequestsException")
        reply = self._within(call)
        machine.live()
        if draw > 1 - account.rate:
            account.count("endpoint's answer lost")
            account.take(round(call.seconds * SECOND / 4))
            machine.live()
            return NoResponse(TIMEOUT, f"the endpoint did not answer within {call.seconds:g} s")
        return reply

    def _within(self, call: Call) -> Reply:
        """The endpoint's answer, if it comes in time; it stops at the deadline that it is told."""
        time, replies = self._machine.account.time, list[HttpResponse]()
        until = time.now() + round(call.seconds * SECOND)
        strand = time.start(lambda: replies.append(self._response(call)))
        while not strand.done and time.now() < until:
            time.wait([strand], until)
        if replies:
            return replies[0]
        time.kill(strand)
        self._machine.account.take(1)
        return NoResponse(TIMEOUT, f"the endpoint did not answer within {call.seconds:g} s")

    def _response(self, call: Call) -> HttpResponse:
        account = self._machine.account
        if account.heard is not None:
            account.heard(call)
        if call.method == "GET":
            return HttpResponse(200, body=b'{"percent": 40}')
        if call.url.startswith(CALLBACK_URL):
            told = json.loads(call.body)
            return HttpResponse(account.called_back(told["data"]["id"], told["data"]["state"]))
        if call.url.startswith(NOTICE_URL):
            told = json.loads(call.body)
            return HttpResponse(account.notified(call.id, told["type"]))
        if account.endpoint_down_until > account.time.now():
            account.count("endpoint down")
            return HttpResponse(503, body=b"down")
        phase = call.url.rpartition("action=")[2]
        facts = json.loads(call.body)
        try:
            result = account.act(phase, Asked(facts["task_id"], facts["fence"]), facts["payload"])
        except Exception as error:  # noqa: BLE001 - whatever the endpoint raises, it answers
            return HttpResponse(500, body=str(error).encode())
        return (
            HttpResponse(202) if isinstance(result, Accepted) else HttpResponse(200, body=json.dumps(result).encode())
        )


class InlineAwsRunner(AwsRunner):
    """Calls AWS resources in virtual time, where no real thread may wait."""

    def _within(self, seconds: float, target: AwsTarget, task: Task, body: bytes) -> TargetEnding:
        del seconds
        return self._ending(lambda: self._call(target, task, body))

    @staticmethod
    def _ending(call: Callable[[], TargetEnding]) -> TargetEnding:
        from duetime.adapters.targets import aws_target  # noqa: PLC0415 - its own way to tell what went wrong

        try:
            return call()
        except Exception as error:  # noqa: BLE001 - as the real one does
            return aws_target._failed(error)


def message_owner(body: str) -> str:
    """The task that a message on the sink was sent for."""
    return str(json.loads(body)["task_id"])
