"""Runs in the attempts function, and answers requests from handler packages.

Each request names its attempt, and can act only for this attempt.

Packages may not invoke other functions, because an invocation of the API function could name any owner.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from duetime.domain.tasks.attempt_run import AttemptToken
from duetime.domain.tasks.targets import Phase
from duetime.domain.tasks.task import Progress
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from duetime.domain.tasks.task import Task
    from duetime.ports.runtime import Clock, RandomSource
    from duetime.services.tasks.attempt_reports import PackagedAttempts

LOST: Mapping[str, Any] = {"lost": True}
"""Response to a request from an attempt that no longer has its task."""


@frozen
class AttemptFunction:
    """Answers the requests from handler packages.

    Attributes:
        api: invokes the API function with an event, and returns its response.
    """

    attempts: PackagedAttempts
    api: Callable[[bytes], bytes]
    random_source: RandomSource
    clock: Clock

    def answer(self, event: Mapping[str, Any]) -> Mapping[str, Any]:
        """Answer one request. A request from an unknown or ended attempt has no effect."""
        token = AttemptToken.parse(str(event.get("attempt")))
        task = None if token is None else self.attempts.task_of(token)
        if task is None:
            return LOST
        match event["operation"]:
            case "report":
                return self._reported(task, event)
            case "checkpoint":
                return {} if self.attempts.save_checkpoint(task, event["checkpoint"].encode()) else LOST
            case "request":
                return {"response": json.loads(self.api(json.dumps(self._request(task, event["request"])).encode()))}
            case _:
                return self._step(task, event)

    def _reported(self, task: Task, event: Mapping[str, Any]) -> Mapping[str, Any]:
        progress = event["progress"]
        found = self.attempts.report(task, None if progress is None else Progress(*progress))
        if found is None:
            return LOST
        left = (found.lease_expires_at or 0) - self.clock.now()
        return {"requested_action": found.requested_action, "leased_for": left}

    def _step(self, task: Task, event: Mapping[str, Any]) -> Mapping[str, Any]:
        steps = self.attempts.steps(task, Phase(event["phase"]))
        if event["operation"] == "keep":
            return {"result": steps.keep(event["name"], event["result"].encode(), event["began"]).decode()}
        found = steps.load_run() if event["operation"] == "load_run" else steps.load()
        return {"results": {name: result.decode() for name, result in found.items()}}

    def _request(self, task: Task, request: Mapping[str, Any]) -> dict[str, Any]:
        """The API event for a request, whose caller is determined by the attempt."""
        return {
            **{name: request[name] for name in ("rawPath", "rawQueryString", "headers", "isBase64Encoded")},
            **({"body": request["body"]} if "body" in request else {}),
            "version": "2.0",
            "requestContext": {
                "http": {"method": request["requestContext"]["http"]["method"], "path": request["rawPath"]},
                "requestId": f"{task.id}.{task.fence}.{self.random_source.nonce()}",
                "authorizer": {"duetime": {"owner": task.owner, "task_id": task.id.text, "only_creates": True}},
            },
        }
