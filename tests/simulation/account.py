"""A simulated AWS account for duetime's own tests, with endpoints, handlers, and the functions' roles."""

from __future__ import annotations

import json
from functools import cached_property
from typing import TYPE_CHECKING, Any

from duetime.adapters.targets.http_messages import HttpResponse
from duetime.handlers import Accepted, BatchItem
from duetime_testing.simulation import account
from duetime_testing.simulation.account import EGRESS, LEASE_SECONDS, TIMEOUTS, Invocation
from tests import grants
from tests.simulation import works
from tests.simulation.endpoints import (
    BATCH_URL,
    CALLBACK_URL,
    CLUSTER,
    CONFLICT,
    JOB_RESOURCES,
    JOBS,
    NOTICE_URL,
    RETRY_AFTER,
    ROWS_URL,
    SINK,
    TASK_DEFINITION,
    Asked,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from duetime.adapters.targets.http_messages import Call as HttpCall

__all__ = ["EGRESS", "LEASE_SECONDS", "PULLED", "TIMEOUTS", "Account", "Invocation"]

PULLED = "simulation-pulled"


class Account(account.Account):
    """A simulated account in which each call is checked against the function's role."""

    handlers_package = works.__name__
    pulled_types = (PULLED,)
    aws_targets = f"{SINK} {JOBS} {TASK_DEFINITION} {CLUSTER} " + " ".join(JOB_RESOURCES)

    @cached_property
    def callback_bodies(self) -> list[bytes]:
        """The bodies of the POST requests to the callback URL, in order."""
        return []

    def check_grant(self, function: str, service: str, operation: str, request: Mapping[str, Any]) -> None:
        """Refuse calls that the function's role does not allow, and record which grants are used."""
        grants.check(function, self.environ, service, operation, request)

    def act(self, phase: str, context: Asked, payload: Any) -> Any:  # noqa: ANN401 - any JSON
        """Execute a phase of a task as an endpoint would; subclasses decide how endpoints behave."""
        raise NotImplementedError

    def act_together(self, items: Sequence[BatchItem[Any]]) -> list[Any]:
        """Run several tasks in one call; an exception in the list fails only its own task."""
        return [self._acted(item) for item in items]

    def _acted(self, item: BatchItem[Any]) -> Any:  # noqa: ANN401 - any JSON, or an error
        try:
            asked: Any = item.context
            return self.act("run", asked, item.payload)
        except Exception as error:  # noqa: BLE001 - whatever it raises fails this task only
            return error

    def notified(self, notice_id: str, kind: str) -> int:
        """Record a notice that was posted to its address, and return the status of the response."""
        raise NotImplementedError

    def called_back(self, task_id: str, state: str) -> int:
        """Record a task's outcome that was posted to its callback URL, and return the status of the response."""
        raise NotImplementedError

    def respond(self, call: HttpCall) -> HttpResponse:
        """Respond to a call as the tasks' endpoint, or as the receiver of notices and outcomes."""
        if call.method == "GET":
            return HttpResponse(200, body=b'{"percent": 40}')
        if call.url.startswith(CALLBACK_URL):
            told = json.loads(call.body)
            self.callback_bodies.append(call.body)
            return HttpResponse(self.called_back(told["data"]["id"], told["data"]["state"]))
        if call.url.startswith(NOTICE_URL):
            told = json.loads(call.body)
            return HttpResponse(self.notified(call.id, told["type"]))
        if self.endpoint_down_until > self.time.now():
            self.count("endpoint down")
            return HttpResponse(503, str(RETRY_AFTER), body=b"down")
        if call.url.startswith(ROWS_URL):
            return self._rows(call)
        if call.url.startswith(BATCH_URL):
            return self._batch(call)
        phase = call.url.rpartition("action=")[2]
        facts = json.loads(call.body)
        try:
            result = self.act(phase, Asked(facts["task_id"], facts["fence"]), facts["payload"])
        except Exception as error:  # noqa: BLE001 - whatever the endpoint raises, it answers
            return HttpResponse(500, body=str(error).encode())
        return (
            HttpResponse(202) if isinstance(result, Accepted) else HttpResponse(200, body=json.dumps(result).encode())
        )

    def _batch(self, call: HttpCall) -> HttpResponse:
        """Respond to a request for several tasks."""
        sent = json.loads(call.body)["items"]
        try:
            asked: list[Any] = [Asked(item["task_id"], item["fence"]) for item in sent]
            results = self.act_together([BatchItem[Any](each, None) for each in asked])
        except Exception as error:  # noqa: BLE001 - whatever the endpoint raises, it answers
            return HttpResponse(500, body=str(error).encode())
        return HttpResponse(200, body=json.dumps({"results": [_outcome(result) for result in results]}).encode())

    def _rows(self, call: HttpCall) -> HttpResponse:
        """Respond to a custom request, whose body names its task."""
        told = json.loads(call.body)
        assert told["task"] == call.headers["Duetime-Task"], "its placeholders were not replaced"
        fence = int(call.headers["Duetime-Fence"])
        try:
            self.act("run", Asked(told["task"], fence), None)
        except Exception as error:  # noqa: BLE001 - whatever the endpoint raises, it answers
            return HttpResponse(500, body=str(error).encode())
        is_known = ord(told["task"][-1]) % 2
        return HttpResponse(CONFLICT if is_known else 202, body=b"{}")


def _outcome(result: Any) -> dict[str, Any]:  # noqa: ANN401 - any JSON, or an error
    """One task's part of a response to a request for several tasks."""
    if isinstance(result, BaseException):
        return {"status": 500, "error": str(result)}
    return {"status": 202} if isinstance(result, Accepted) else {"status": 200, "result": result}
