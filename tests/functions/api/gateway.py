"""API Gateway's HTTP API as the api function sees it, with events in payload format 2.0 and responses."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from urllib.parse import urljoin

from duetime_testing.simulation.gateway import event_of
from functions.api.handler import handler
from tests import grants

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True)
class Context:
    """The part of Lambda's invocation context that the function uses."""

    function_name: str = "api"
    memory_limit_in_mb: int = 512
    invoked_function_arn: str = "arn:aws:lambda:us-east-1:123456789012:function:api"
    aws_request_id: str = "11111111-2222-3333-4444-555555555555"


@dataclass(frozen=True)
class Answer:
    """A response of the function, as the gateway would send it.

    Attributes:
        path: the path of the request.
    """

    status: int
    headers: Mapping[str, str]
    text: str
    is_base64: bool = False
    path: str = ""

    @property
    def body(self) -> Any:  # noqa: ANN401 - any JSON
        """The response body, parsed as JSON."""
        return json.loads(self.text, parse_constant=_no_json)

    @property
    def location(self) -> str:
        """The path in `Location`, resolved as a client would resolve it (RFC 9110, 10.2.2)."""
        return urljoin(self.path, self.headers["Location"])

    @property
    def problem(self) -> dict[str, Any]:
        """The response body as a problem; asserts that the response is a problem."""
        assert self.headers["Content-Type"] == "application/problem+json"
        problem: dict[str, Any] = self.body
        assert problem["status"] == self.status
        assert problem["type"] == f"urn:duetime:problem:{problem['code']}"
        return problem

    @property
    def faults(self) -> dict[str, str]:
        """The reasons that a problem gives, by field."""
        return {error["field"]: error["reason"] for error in self.problem["errors"]}


@dataclass(frozen=True)
class Gateway:
    """Sends requests to the function.

    Attributes:
        authorizer: the authorizer's statements about the caller, as the gateway passes them on.
        headers: headers sent with every request.
    """

    authorizer: Mapping[str, Any] | None = None
    headers: Mapping[str, str] = field(default_factory=dict)

    def send(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        *,
        query: str = "",
        raw: str | None = None,
        is_base64: bool = False,
    ) -> Answer:
        """Send a request with `body` as JSON or `raw` unchanged, and return the response."""
        text = raw if raw is not None else None if body is None else json.dumps(body)
        given = {"content-type": "application/json", "host": "api.example.org", **self.headers, **(headers or {})}
        event = event_of(method, path, text, given, query, self.authorizer, is_base64=is_base64)
        with grants.acting("api"):
            response = handler(event, Context())  # type: ignore[arg-type] # a fake of Lambda's context
        return Answer(response["statusCode"], response["headers"], response["body"], response["isBase64Encoded"], path)

    def create(self, body: Mapping[str, Any] | None = None, headers: Mapping[str, str] | None = None) -> dict[str, Any]:
        """Create a task, assert that this succeeds, and return the task's JSON."""
        answer = self.send("POST", "/v1/tasks", body or {"type": "report"}, headers)
        assert answer.status == 201, answer.text
        task: dict[str, Any] = answer.body
        return task

    def listed(self, query: str = "") -> list[str]:
        """The task ids on a page of the task list."""
        return [task["id"] for task in self.send("GET", "/v1/tasks", query=query).body["tasks"]]


def _no_json(text: str) -> None:
    raise ValueError(text)
