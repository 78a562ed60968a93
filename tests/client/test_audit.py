"""Tests the requests that `duetime audit` sends to CloudWatch Logs, and the command's output."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Self

import pytest

from tests.client.deployment import NOW

if TYPE_CHECKING:
    from collections.abc import Callable

    from typer.testing import Result

    Run = Callable[..., Result]

AT = round(NOW.timestamp() * 1000)
DAY = 24 * 3_600_000


def record(operation: str, owner: str, subject: str) -> dict[str, Any]:
    """Return a record as the API function writes it."""
    return {
        "at": "2026-11-21T11:59:00.000Z",
        "owner": owner,
        "caller": f"{owner}/session",
        "operation": operation,
        "subject": subject,
        "reason": "month end",
        "status": 200,
        "code": "",
        "location": "",
        "source_ip": "203.0.113.7",
        "user_agent": "curl",
        "request_id": "r",
    }


@dataclass
class FakeSession:
    """A botocore session with one stack and its audit log, with one record per page.

    Attributes:
        records: the log's records.
        outputs: the stack's outputs.
        asked: the requests for log records.
    """

    records: list[dict[str, Any]]
    outputs: dict[str, str] = field(default_factory=lambda: {"AuditLogGroupName": "audit"})
    asked: list[dict[str, Any]] = field(default_factory=list)

    def create_client(self, _service: str) -> Self:
        """Return this object as the client of any service."""
        return self

    def describe_stacks(self, StackName: str) -> dict[str, Any]:  # noqa: N803 - boto3's name
        """Describe the stack."""
        assert StackName == "duetime-prod"
        outputs = [{"OutputKey": key, "OutputValue": value} for key, value in self.outputs.items()]
        return {"Stacks": [{"Outputs": outputs}]}

    def get_paginator(self, _operation: str) -> Self:
        """Return the paginator."""
        return self

    def paginate(self, **wanted: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - as botocore's
        """Return the pages."""
        self.asked.append(wanted)
        return [{"events": [{"message": json.dumps(each)}]} for each in self.records]


@pytest.fixture
def session(monkeypatch: pytest.MonkeyPatch) -> FakeSession:
    """Replace botocore's responses."""
    found = FakeSession(
        [record("pauseTask", "ann", "/v1/tasks/A/pause"), record("putSwitch", "bob", "/v1/switches/x/y")]
    )
    monkeypatch.setattr("botocore.session.get_session", lambda: found)
    return found


def test_all_audit_records_of_a_period_are_printed(duetime: Run, session: FakeSession) -> None:
    """Each record is printed with caller, subject, status, address and reason."""
    ended = duetime("audit", "--stack", "duetime-prod", "--since", "2d", "--json")
    assert ended.exit_code == 0, ended.output
    assert json.loads(ended.stdout) == session.records
    assert session.asked == [{"logGroupName": "audit", "startTime": AT - 2 * DAY}]
    table = duetime("audit", "--stack", "duetime-prod").stdout
    assert all(word in table for word in ("ann/session", "/v1/tasks/A/pause", "200", "203.0.113.7", "month end"))


def test_the_ends_of_a_period_are_durations_or_timestamps(duetime: Run, session: FakeSession) -> None:
    """A time is given as a duration before now or as a timestamp; other strings are refused before anything is read."""
    options = ("--stack", "duetime-prod", "--since", "2026-11-01T00:00Z", "--until", "1d")
    assert duetime("audit", *options).exit_code == 0
    first = round(datetime(2026, 11, 1, tzinfo=UTC).timestamp() * 1000)
    assert session.asked == [{"logGroupName": "audit", "startTime": first, "endTime": AT - DAY}]
    for wrong in ("2026-13-01", "yesterday"):
        assert duetime("audit", "--stack", "duetime-prod", "--until", wrong).exit_code == 2
    assert len(session.asked) == 1


@pytest.mark.parametrize(
    ("options", "pattern"),
    [
        (("--of-owner", "ann"), '{ ($.owner = "ann") }'),
        (("--caller", "ann/"), None),
        (("--operation", "pauseTask"), '{ ($.operation = "pauseTask") }'),
        (("--subject", "tasks/A"), None),
    ],
)
def test_options_filter_audit_records(
    duetime: Run, session: FakeSession, options: tuple[str, str], pattern: str | None
) -> None:
    """CloudWatch filters by the fields that it can compare, and the command checks all returned records again."""
    ended = duetime("audit", "--stack", "duetime-prod", *options, "--json")
    assert [each["owner"] for each in json.loads(ended.stdout)] == ["ann"]
    assert session.asked[0].get("filterPattern") == pattern


def test_without_an_audit_log_the_error_names_the_setting(duetime: Run, session: FakeSession) -> None:
    """For a stack without an audit log, the command names the setting instead of printing an empty list."""
    session.outputs.clear()
    ended = duetime("audit", "--stack", "duetime-prod")
    assert ended.exit_code == 1
    assert "audit_retention" in ended.output
