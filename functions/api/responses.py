"""Responses as they leave: bodies as text, with their headers."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

from duetime.contract.http import problems
from duetime.contract.http.etags import etag_of
from duetime.contract.http.request_errors import MethodUnsupported
from duetime.contract.tasks import responses
from duetime.contract.tasks.encoding import entry, json_text, task_text
from duetime.domain.errors import Unavailable

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from duetime.domain.tasks.task import Task

_NO_STORE = {"Cache-Control": "no-store"}
# An outcome stays as it is, but a later release may reopen it: caches ask again by ETag before long.
_CACHEABLE = {"Cache-Control": "private, max-age=60"}
_RETRY_AFTER_SECONDS = "1"


@dataclass(frozen=True, slots=True)
class Response:
    """What is answered to a request."""

    status: int
    text: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)

    def event(self) -> dict[str, Any]:
        """The response as the gateway takes it."""
        return {
            "statusCode": self.status,
            "headers": dict(self.headers),
            "body": self.text,
            "isBase64Encoded": False,
        }


def answer(text: str, status: int = HTTPStatus.OK, headers: Mapping[str, str] | None = None) -> Response:
    """A response of JSON text."""
    return Response(int(status), text, {**_NO_STORE, "Content-Type": "application/json", **(headers or {})})


def task_response(task: Task, status: int = HTTPStatus.OK, headers: Mapping[str, str] | None = None) -> Response:
    """A task, whole, with its ETag."""
    return answer(task_text(task), status, {"ETag": etag_of(task.version), **(headers or {})})


def page_response(tasks: Sequence[Task], token: str | None) -> Response:
    """Some of the tasks of a list, and the token of the next."""
    return answer(json_text(responses.PageResponse(tasks=[entry(task) for task in tasks], next_token=token)))


def not_modified(task: Task) -> Response:
    """The caller has this version already."""
    return Response(HTTPStatus.NOT_MODIFIED.value, "", {"ETag": etag_of(task.version), **caching(task)})


def problem_response(error: Exception, instance: str) -> Response:
    """An error, as a problem."""
    problem = problems.problem_of(error, instance)
    headers = {**_NO_STORE, "Content-Type": problems.MEDIA_TYPE}
    if isinstance(error, MethodUnsupported):
        headers["Allow"] = ", ".join(error.allowed)
    if isinstance(error, Unavailable):
        headers["Retry-After"] = _RETRY_AFTER_SECONDS
    return Response(problem["status"], json.dumps(problem), headers)


def caching(task: Task) -> dict[str, str]:
    """How long what was read of a task may be kept."""
    return _CACHEABLE if task.is_terminal and task.finished_at is not None else _NO_STORE
