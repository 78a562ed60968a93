"""Tests of the audit log, which records the caller, operation, owner, reason, address and outcome of requests."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from duetime.contract.audit import NOT_RECORDED
from duetime.contract.openapi.document import OPERATIONS
from duetime.environment_variables import Variable
from tests.functions.api.gateway import Gateway
from tests.functions.stack import Stack

LATER = {"type": "later", "delay_seconds": 3600, "allow_unknown_type": True}


@pytest.fixture
def stack(api: Gateway) -> Stack:
    """The Lambda functions over AWS fakes, with an audit log."""
    del api
    return Stack.faked({Variable.AUDIT_LOG_GROUP: "audit"})


def records(stack: Stack) -> list[dict[str, Any]]:
    """The records in the audit log."""
    return [json.loads(line) for lines in stack.logs.lines.values() for line in lines]


def test_a_controlling_call_is_recorded_with_its_reason(api: Gateway, stack: Stack) -> None:
    """A call that controls tasks is recorded with all its facts, but creating and reading tasks is not recorded."""
    ann = replace(api, headers={"X-Duetime-Owner": "ann"})
    task = ann.send("POST", "/v1/tasks", LATER).body["id"]
    ann.send("GET", f"/v1/tasks/{task}")
    assert records(stack) == []
    ann.send("POST", f"/v1/tasks/{task}/pause", {"reason": "month end"})
    (found,) = records(stack)
    assert found.pop("request_id")
    assert found.pop("at").endswith("Z")
    assert {name: bool(found.pop(name)) for name in ("source_ip", "user_agent")} == {
        "source_ip": True,
        "user_agent": True,
    }
    assert found == {
        "owner": "ann",
        "caller": "ann",
        "operation": "pauseTask",
        "subject": f"/v1/tasks/{task}/pause",
        "reason": "month end",
        "status": 200,
        "code": "",
        "location": "",
    }


def test_a_refused_call_is_recorded_with_its_status_and_error_code(api: Gateway, stack: Stack) -> None:
    """A refused call is recorded with its status and error code, even if its body is unreadable."""
    api.send("PUT", "/v1/switches/all/all", {"stopped": True, "reason": "an attempt"})
    api.send("POST", "/v1/tasks/cancel", raw='{"reason": 7, "filter"')
    found = [(each["operation"], each["status"], each["code"], each["reason"]) for each in records(stack)]
    assert found == [
        ("putSwitch", 403, "operator_required", "an attempt"),
        ("cancelTasksByFilter", 400, "body_unreadable", ""),
    ]


def test_the_record_of_a_forbidden_owner_names_the_caller_but_no_owner(api: Gateway) -> None:
    """If a caller may not act for the owner in its request, the record names the caller but no owner."""
    del api
    stack = Stack.faked({Variable.AUDIT_LOG_GROUP: "audit", Variable.AUTHENTICATION: "jwt"})
    eve = Gateway(authorizer={"jwt": {"claims": {"sub": "eve"}}})
    answer = eve.send("POST", "/v1/tasks/cancel", {"filter": {"type": "a"}}, {"X-Duetime-Owner": "ann"})
    (found,) = records(stack)
    assert (answer.status, found["status"], found["code"]) == (403, 403, "owner_forbidden")
    assert (found["owner"], found["caller"]) == ("", "eve")


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_reading_another_owners_tasks_is_recorded(api: Gateway, method: str) -> None:
    """Reading another owner's tasks is recorded, but reading one's own tasks is not recorded."""
    del api
    stack = Stack.faked({Variable.AUDIT_LOG_GROUP: "audit", Variable.AUTHENTICATION: "jwt", Variable.ADMINS: "root"})
    root, ann = (Gateway(authorizer={"jwt": {"claims": {"sub": name}}}) for name in ("root", "ann"))
    root.send("GET", "/v1/tasks")
    ann.send("GET", "/v1/tasks", headers={"X-Duetime-Owner": "ann"})
    root.send(method, "/v1/tasks", headers={"X-Duetime-Owner": "ann"})
    (found,) = records(stack)
    assert (found["operation"], found["owner"], found["caller"], found["status"]) == ("listTasks", "ann", "root", 200)


def test_a_bulk_operation_is_recorded_with_its_path(api: Gateway, stack: Stack) -> None:
    """A bulk operation's audit record contains the operation's path."""
    started = api.send("POST", "/v1/purges", {"filter": {"type": "a"}, "reason": "request 17"})
    (found,) = records(stack)
    assert (found["operation"], found["location"]) == ("createPurge", f"/v1/purges/{started.body['id']}")


def test_all_records_of_a_process_are_in_one_stream(api: Gateway, stack: Stack) -> None:
    """All audit records of a process are in one log stream, which is created for the first record."""
    assert stack.logs.lines == {}
    for _ in range(3):
        api.send("POST", "/v1/purges", {"filter": {"type": "a"}})
    assert [len(lines) for lines in stack.logs.lines.values()] == [3]


@pytest.mark.parametrize("error", ["ThrottlingException", "AccessDeniedException"])
def test_a_request_succeeds_even_if_the_audit_log_fails(
    api: Gateway, stack: Stack, error: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """If the audit log fails, requests are still answered.

    The record is written to the function's log, and a metric counts such records.
    """
    task = api.send("POST", "/v1/tasks", LATER).body["id"]
    stack.logs.error = error
    assert api.send("POST", f"/v1/tasks/{task}/cancel", {"reason": "why"}).status == 200
    written = capsys.readouterr().out
    assert '\\"operation\\":\\"cancelTask\\"' in written
    assert "audit_records_lost" in written


def test_operations_that_are_not_recorded_exist_and_change_something() -> None:
    """The list of unrecorded operations has only operations that exist and change something."""
    changing = {each.id for each in OPERATIONS if not each.is_safe}
    assert changing >= NOT_RECORDED
