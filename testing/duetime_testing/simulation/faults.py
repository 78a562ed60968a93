"""Injects faults into AWS calls."""

from __future__ import annotations

from contextlib import suppress
from copy import copy
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import TYPE_CHECKING, Any

from botocore.exceptions import ClientError, ConnectTimeoutError, ReadTimeoutError

from duetime.adapters.dynamodb import schema
from duetime.domain.times import SECOND
from duetime_testing.fakes.dynamodb import FakePaginator
from duetime_testing.fakes.errors import Exceptions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from duetime_testing.simulation.machines import Machine

_THROTTLES = {
    "dynamodb": "ProvisionedThroughputExceededException",
    "sqs": "RequestThrottled",
    "s3": "SlowDown",
    "lambda": "TooManyRequestsException",
    "states": "ThrottlingException",
    "events": "ThrottlingException",
    "ecs": "ThrottlingException",
    "batch": "TooManyRequestsException",
    "codebuild": "ThrottlingException",
    "glue": "ThrottlingException",
    "apigatewaymanagementapi": "LimitExceededException",
}
_DIES_MEANWHILE = 0.5
"""The share of late calls whose sender dies before the call arrives."""
_BATCHES = frozenset({"send_message_batch", "change_message_visibility_batch", "delete_message_batch"})


class Fault(Enum):
    """A fault in one call."""

    CRASH_BEFORE = "the process dies before the call"
    CRASH_AFTER = "the process dies after the call"
    THROTTLED = "the service throttles, until the SDK gives up"
    AWAY = "the service does not answer, until the SDK gives up"
    RESENT = "the answer is lost, and the SDK sends the call again"
    LOST = "the call is made, but no answer ever comes"
    LATE = "the call arrives long after its sender has given up"
    STALLED = "the call hangs for a while"
    PARTIAL = "only a part of a batch is processed"


@dataclass(frozen=True, slots=True)
class Call:
    """An AWS call that a simulated process is about to make.

    Attributes:
        machine: the process; `machine.function` is the function's name.
        service: the service's name, such as `dynamodb`, `sqs` or `states`.
        operation: boto3's name for the call.
        request: the arguments of the call.
    """

    machine: Machine
    service: str
    operation: str
    request: Mapping[str, Any]

    def refuse(self) -> None:
        """Throttle this call, and raise the error that the SDK raises when it gives up."""
        self.machine.account.take(300)
        raise Exceptions().make(_THROTTLES[self.service], self.operation)

    @property
    def partition(self) -> str | None:
        """The one partition that the call reads or writes; `None` if the call does not name a single partition."""
        if self.service != "dynamodb":
            return None
        key = self.request.get("Key") or self.request.get("Item")
        if key is None:
            values = self.request.get("ExpressionAttributeValues") or {}
            value = values.get(":p") or values.get(":partition")
        else:
            value = key[schema.PARTITION_KEY]
        return str(value["S"]) if value else None


@dataclass(frozen=True)
class Meta:
    """The `meta` attribute of an SQS client, with the endpoint."""

    endpoint_url: str = "https://sqs.us-east-1.amazonaws.com"


class FaultyClient:
    """A client whose calls take time and occasionally fail.

    Args:
        machine: the process that makes the calls.
        fake: the fake of the service.
        service: the service's name.
        once: whether the SDK is configured not to retry calls.
    """

    def __init__(
        self,
        machine: Machine,
        fake: Any,  # noqa: ANN401 - any fake
        service: str,
        *,
        once: bool = False,
    ) -> None:
        self._once = once
        self._machine = machine
        self._fake = fake
        self._service = service
        self.exceptions = fake.exceptions

    @property
    def meta(self) -> Meta:
        """The `meta` attribute of boto3's clients."""
        return Meta()

    def __getattr__(self, operation: str) -> Callable[..., Any]:
        return partial(self._call, operation)

    def get_paginator(self, operation: str) -> FakePaginator:
        """Return a paginator whose requests also take time and can fail."""
        return FakePaginator(partial(self._call, operation))

    def _call(self, operation: str, **request: Any) -> Any:  # noqa: ANN401 - whatever the service answers
        machine, account = self._machine, self._machine.account
        machine.live()
        account.check_grant(machine.function, self._service, operation, request)
        call = Call(machine, self._service, operation, request)
        if account.before_call is not None:
            account.before_call(call)
            machine.live()
        if account.is_throttled(call):
            call.refuse()
        fault = account.fault_for(machine, operation)
        account.travel()
        machine.live()
        account.calls += 1
        if account.time.now() < machine.cut_off_until:
            account.trace(machine, operation, "is cut off")
            account.take(5 * SECOND)
            machine.live()
            raise ConnectTimeoutError(endpoint_url=self._service)
        make = partial(self._make, operation, request)
        answer = make() if fault is None else self._with(fault, operation, request, make)
        if account.after_call is not None:
            account.after_call(Call(machine, self._service, operation, request))
        account.travel()
        machine.live()
        return answer

    def _make(self, operation: str, request: dict[str, Any]) -> Any:  # noqa: ANN401 - same
        account = self._machine.account
        try:
            request = self._machine.code.request(operation, request)
            answer = getattr(self._fake, operation)(**request)
        except Exception as error:
            # The trace keeps a copy without a traceback, which would otherwise keep its frames in memory as long as the
            # trace.
            account.trace(self._machine, operation, request, copy(error))
            raise
        account.trace(self._machine, operation, request, answer)
        return answer

    def _with(  # noqa: C901 - a case for each fault
        self, fault: Fault, operation: str, request: dict[str, Any], make: Callable[[], Any]
    ) -> Any:  # noqa: ANN401 - same
        machine, account = self._machine, self._machine.account
        if fault is Fault.RESENT and self._once:
            fault = Fault.LOST
        account.trace(machine, operation, fault.value)
        match fault:
            case Fault.CRASH_BEFORE:
                machine.die()
            case Fault.CRASH_AFTER:
                make()
                machine.die()
            case Fault.THROTTLED:
                account.take(300)
                raise self._fake.exceptions.make(_THROTTLES[self._service], operation)
            case Fault.AWAY:
                account.take(account.random.choice([30, 3 * SECOND]))
                raise ConnectTimeoutError(endpoint_url=self._service)
            case Fault.LOST:
                make()
                account.take(account.random.choice([30, 6 * SECOND]))
                raise ReadTimeoutError(endpoint_url=self._service)
            case Fault.LATE:
                author = account.time.author()
                account.time.start_process(partial(self._make_later, make)).on_behalf_of = author
                account.take(5 * SECOND)
                if account.random.random() < _DIES_MEANWHILE:
                    machine.die()
                raise ReadTimeoutError(endpoint_url=self._service)
            case Fault.RESENT:
                make()
                account.take(account.random.choice([30, 5 * SECOND]))
                machine.live()
            case Fault.STALLED:
                # The trigger can be so slow that its next invocation overtakes it.
                longest = 90 * SECOND if machine.function == "trigger" else 5 * SECOND
                account.take(account.random.choice([100, SECOND, longest]))
                machine.live()
            case Fault.PARTIAL if operation in _BATCHES:
                return self._in_part(operation, request)
        return make()

    def _make_later(self, make: Callable[[], Any]) -> None:
        """Execute a call after a long delay; the call's response is lost."""
        self._machine.account.take(self._machine.account.random.choice([6, 20, 33, 36, 40, 45, 60]) * SECOND)
        with suppress(ClientError):
            make()

    def _in_part(self, operation: str, request: dict[str, Any]) -> Any:  # noqa: ANN401 - same
        """Process half of a batch's entries, and reject the rest with a server-side error."""
        entries = list(request["Entries"])
        self._machine.account.random.shuffle(entries)
        done = entries[: len(entries) // 2]
        answer = self._make(operation, request | {"Entries": done}) if done else {}
        failed = [
            {"Id": entry["Id"], "Code": "InternalError", "SenderFault": False} for entry in entries[len(entries) // 2 :]
        ]
        return {**answer, "Failed": [*answer.get("Failed", []), *failed]}
