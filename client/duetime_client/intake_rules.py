"""`client.intake_rules`: rules by which events create, cancel or wake tasks; for operators."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - pydantic reads the annotations when the class is made
from datetime import datetime  # noqa: TC003 - same
from typing import Any

from duetime_client.io_operations import Request
from duetime_client.resource import AsyncResource, Operation, Resource, SyncResource
from duetime_client.responses import one
from duetime_client.session import segment
from duetime_client.task import ResponseModel

INTAKE_RULES = "/v1/intake-rules"


class IntakeRule(ResponseModel):
    """An intake rule: the effect of events that match a pattern.

    Attributes:
        pattern: the EventBridge event pattern.
        create: the `task` that each event creates, and the `fields` that are set from the event, if the rule creates
            tasks.
        cancel: the `filter` of the tasks that each event cancels, and the filter's `fields`, if the rule cancels tasks.
        signal: the `name`, `key` and `payload` of the signal that each event sends, and the signal's `fields`, if the
            rule sends signals.
        owner: owner of the tasks.
    """

    name: str
    pattern: Mapping[str, Any]
    create: Mapping[str, Any] | None = None
    cancel: Mapping[str, Any] | None = None
    signal: Mapping[str, Any] | None = None
    owner: str
    description: str = ""
    updated_at: datetime
    updated_by: str


class IntakeRuleList(ResponseModel):
    """The intake rules of a deployment, in order of name."""

    rules: list[IntakeRule]


class IntakeRuleOperations(Resource):
    """Intake rules."""

    @Operation
    def list(self) -> Request[IntakeRuleList]:
        """All rules, in order of name."""
        return Request("GET", INTAKE_RULES, one(IntakeRuleList))

    @Operation
    def get(self, name: str) -> Request[IntakeRule]:
        """One rule."""
        return Request("GET", _path_of(name), one(IntakeRule))

    @Operation
    def put(self, name: str, rule: Mapping[str, Any]) -> Request[IntakeRule]:
        """Set a rule, such as `{"pattern": …, "create": {"task": …, "fields": …}}`; this replaces any existing rule."""
        return Request("PUT", _path_of(name), one(IntakeRule), body=dict(rule), repeatable=True)

    @Operation
    def delete(self, name: str) -> Request[IntakeRule]:
        """Delete a rule and return it."""
        return Request("DELETE", _path_of(name), one(IntakeRule))


class IntakeRules(IntakeRuleOperations, SyncResource):
    """`client.intake_rules` of `Client`."""


class AsyncIntakeRules(IntakeRuleOperations, AsyncResource):
    """`client.intake_rules` of `AsyncClient`."""


def _path_of(name: str) -> str:
    return f"{INTAKE_RULES}/{segment(name)}"
