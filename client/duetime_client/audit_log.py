"""Reads the audit log of a deployment from CloudWatch Logs. This module requires botocore (the extra `aws`)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

OUTPUT = "AuditLogGroupName"
"""The stack's output with the name of the log group."""


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """Selects records; a record must match every given field.

    Attributes:
        caller: a part of the caller's name, such as a role or a session.
        subject: a part of the path of the affected resource, such as a task's id.
    """

    owner: str = ""
    caller: str = ""
    operation: str = ""
    subject: str = ""

    def matches(self, record: Mapping[str, Any]) -> bool:
        """Whether a record matches all fields."""
        return (
            self.owner in {"", record.get("owner")}
            and self.caller in str(record.get("caller", ""))
            and self.operation in {"", record.get("operation")}
            and self.subject in f"{record.get('subject', '')} {record.get('location', '')}"
        )

    @property
    def pattern(self) -> str:
        """The CloudWatch Logs filter pattern for the fields that a pattern can compare; empty to match all records."""
        values = {"owner": self.owner, "operation": self.operation}
        # CloudWatch Logs treats an asterisk as a wildcard, so `matches` compares the fields again.
        terms = [f"($.{name} = {json.dumps(value)})" for name, value in values.items() if value]
        return "{ " + " && ".join(terms) + " }" if terms else ""


def audit_group(session: Any, stack: str) -> str | None:  # noqa: ANN401 - botocore has no types
    """The log group of a stack's audit log; `None` if the stack has no audit log."""
    response = session.create_client("cloudformation").describe_stacks(StackName=stack)
    outputs = response["Stacks"][0].get("Outputs", [])
    return next((str(each["OutputValue"]) for each in outputs if each["OutputKey"] == OUTPUT), None)


def audit_records(
    logs: Any,  # noqa: ANN401 - botocore has no types
    group: str,
    wanted: AuditFilter,
    since_ms: int,
    until_ms: int | None = None,
) -> Iterator[Mapping[str, Any]]:
    """Yield the records of a period, oldest first, page by page.

    Args:
        logs: a botocore client for CloudWatch Logs.
        group: name of the log group.
        wanted: selects the records.
        since_ms: the earliest time, in milliseconds since the epoch.
        until_ms: the latest time; `None` for now.
    """
    options = {"filterPattern": wanted.pattern or None, "endTime": until_ms}
    given = {name: value for name, value in options.items() if value is not None}
    pages = logs.get_paginator("filter_log_events").paginate(logGroupName=group, startTime=since_ms, **given)
    for page in pages:
        for event in page["events"]:
            record = json.loads(event["message"])
            if wanted.matches(record):
                yield record
