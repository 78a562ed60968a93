"""Calls HTTP endpoints through the account, and AWS targets without real threads, for a simulated process."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.adapters.targets.aws_target import AwsRunner
from duetime.adapters.targets.http_messages import EGRESS_FAILED, TIMEOUT, HttpResponse, NoResponse
from duetime.domain.times import SECOND

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.adapters.targets.http_messages import Call, Reply
    from duetime.domain.tasks.attempt_results import TargetEnding
    from duetime.domain.tasks.targets import AwsTarget
    from duetime.domain.tasks.task import Task
    from duetime_testing.simulation.machines import Machine

_FAULTS = 4
"""How many times more likely a fault is in an endpoint call than in an AWS call. A task makes many AWS calls but few
endpoint calls."""


class SimulatedCaller:
    """Makes HTTP calls to simulated endpoints within a deadline; calls and responses are occasionally lost."""

    def __init__(self, machine: Machine) -> None:
        self._machine = machine

    def call(self, call: Call) -> Reply:
        """Call an endpoint, and return its response or the reason why there is no response."""
        machine, account = self._machine, self._machine.account
        machine.live()
        account.travel()
        draw, rate = account.random.random(), _FAULTS * account.rate
        if draw < rate:
            account.count("egress refused")
            return NoResponse(EGRESS_FAILED, "the call could not be handed on: TooManyRequestsException")
        reply = self._within(call)
        machine.live()
        if draw > 1 - rate:
            account.count("endpoint's answer lost")
            account.take(round(call.seconds * SECOND / 4))
            machine.live()
            return NoResponse(TIMEOUT, f"the endpoint did not answer within {call.seconds:g} s")
        return reply

    def _within(self, call: Call) -> Reply:
        """The endpoint's response if it arrives before the deadline.

        Otherwise the endpoint is stopped, and the result is a timeout.
        """
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
        return account.respond(call)


class InlineAwsRunner(AwsRunner):
    """Calls AWS resources in virtual time, without real threads."""

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
