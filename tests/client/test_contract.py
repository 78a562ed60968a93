"""The client against the operations that the API declares."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from duetime.contract.http.operations import OPERATIONS
from duetime.contract.http.query_parameters import no_query, read_query
from duetime.contract.http.request_json import read
from duetime.contract.http.routes import operation_at
from duetime.contract.http.validation_errors import validated
from duetime.contract.tasks.report_bodies import EmptyRequest
from duetime_client import ApiError, Client
from tests.client.deployment import problem

if TYPE_CHECKING:
    from duetime.contract.http.operation import Operation
    from tests.client.deployment import Deployment, Received

_ANYTHING: tuple[Any, ...] = ("a",)
_TOLD: tuple[Any, ...] = ("a", 1)
_STRETCH: tuple[Any, ...] = ("a", "2026-11-01T00:00:00Z", "2026-11-02T00:00:00Z")
_FILTER: tuple[Any, ...] = ({"type": "mail", "tags": {"team": "dba"}},)
_TIMED: dict[str, Any] = {"cron": "30 1 * * *", "timezone": "Europe/London"}
_LISTED: dict[str, Any] = {"page_size": 5, "tags": {"team": "dba"}, "due_after": "2026-11-01T00:00:00Z", "order": "asc"}
_BULK: dict[str, Any] = {"limit": 5, "dry_run": True, "order": "asc", "next_token": "t"}

CALLS: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "query_task": (("a", "status"), {}),
    "cancel_backfill": (("a", "b"), {}),
    "cancel_task": (_ANYTHING, {"force": True, "reason": "why"}),
    "delete_task": (_ANYTHING, {"if_match": '"1"'}),
    "delete_topology": (_ANYTHING, {"if_match": '"1"'}),
    "cancel_tasks_by_filter": (_FILTER, {"force": True, **_BULK}),
    "update_task": (_ANYTHING, {"if_match": '"1"', "reason": "why", "name": "n"}),
    "update_tasks_by_filter": ((*_FILTER, {"name": "n"}), _BULK),
    "explain_schedule": (("a", _STRETCH[1]), {}),
    "create_backfill": (_STRETCH, {"per_minute": 5}),
    "get_backfill": (("a", "b"), {}),
    "complete_lease": (("a", {"rows": 17}), {}),
    "create_schedule": (_ANYTHING, {"task": {"type": "mail"}, **_TIMED}),
    "create_task": (("mail",), {"idempotency_key": "k", "wait_seconds": 5, "delay_seconds": 1, "tags": {"a": "b"}}),
    "create_task_batch": (([{"type": "mail"}],), {"idempotency_key": "k"}),
    "create_topology": (({"nodes": {"a": {"type": "mail"}}},), {"idempotency_key": "k"}),
    "delete_switch": (("type", "mail"), {}),
    "fail_lease": (("a", "Boom", "no such row"), {"retriable": False}),
    "get_switch": (("type", "mail"), {}),
    "acquire_leases": ((["mail"],), {"max_tasks": 2, "wait_seconds": 1, "lease_seconds": 60, "worker": "w"}),
    "list_dead_letters": ((), {"error_type": "Boom", **_LISTED}),
    "list_schedule_runs": (_ANYTHING, {"due_after": _STRETCH[1], "due_before": _STRETCH[2], "page_size": 5}),
    "list_occurrences": (_ANYTHING, {"start": _STRETCH[1], "end": _STRETCH[2], "limit": 5}),
    "list_schedules": ((), {"state": "paused", "page_size": 5}),
    "list_topologies": ((), {"state": "failed", **_LISTED}),
    "list_tasks": ((), {"state": "failed", "expand": ["payload", "result"], **_LISTED}),
    "notify_failure": (("a", 1, "Boom", "no such row"), {"retriable": False}),
    "notify_success": (("a", 1, {"rows": 17}), {}),
    "acknowledge_lease_pause": (("a", {"row": 17}), {}),
    "pause_schedule": (("a", "why"), {}),
    "preview_schedule": ((), {"start": _STRETCH[1], "count": 5, **_TIMED}),
    "put_calendar": (_ANYTHING, {"dates": ["2026-12-25"], "timezone": "Europe/London"}),
    "put_icalendar": (("a", b"BEGIN:VCALENDAR"), {"mode": "includes", "timezone": "Europe/London"}),
    "put_switch": (("type", "mail"), {"stopped": True, "max_concurrent": 5, "reason": "why"}),
    "retry_tasks_by_filter": (({"error_type": "Boom"},), _BULK),
    "renew_lease": (("a", 5, "on"), {}),
    "report_heartbeat": (_TOLD, {}),
    "report_progress": (("a", 1, 40, "on"), {}),
    "update_schedule": (_ANYTHING, {"reason": "why", "if_match": '"1"', "task": {"type": "mail"}, **_TIMED}),
    **dict.fromkeys(
        (
            *(
                "cancel_bulk_operation",
                "acknowledge_lease_cancel",
                "delete_calendar",
                "delete_schedule",
            ),
            *("release_lock", "get_bulk_operation", "get_calendar", "get_lock", "get_schedule", "get_task"),
            *("get_topology", "list_task_attempts", "list_task_events", "release_lease"),
            *("list_backfills", "list_schedule_events", "explain_task"),
        ),
        (_ANYTHING, {}),
    ),
    **dict.fromkeys(
        (
            *("cancel_topology", "pause_task", "pause_topology", "resume_task", "resume_topology"),
            *("retry_task", "retry_topology", "rollback_task", "run_task", "resume_schedule", "run_schedule"),
        ),
        (_ANYTHING, {"reason": "why"}),
    ),
    **dict.fromkeys(
        (
            *("create_watch_ticket", "get_summary", "list_bulk_operations", "list_calendars", "list_locks"),
            *("list_owner_summaries", "list_switches"),
        ),
        ((), {}),
    ),
}
"""Each method that sends a request, with arguments that use all that it can send."""
COMBINED = {"close", "follow_bulk_operation", "follow_task", "follow_topology", "watch"}
"""Methods that send nothing, or do it through the others."""
NAMED_OTHERWISE = {
    "listTasks": {"list_tasks", "list_dead_letters"},
    "reportOutcome": {"notify_success", "notify_failure"},
    "putCalendar": {"put_calendar", "put_icalendar"},
}
"""Operations whose methods are not called as they are."""
WITHOUT_METHOD = {"getHealth", "getApiIndex", "getOpenApiDocument"}
"""Operations for monitors and for generators of clients."""


def _methods_of(operation: Operation) -> set[str]:
    snake = re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", operation.id)
    return NAMED_OTHERWISE.get(operation.id, {snake})


def test_every_operation_has_a_method_of_its_name() -> None:
    """The client's own methods are those of the declared operations, no more and no fewer."""
    declared = {method for one in OPERATIONS if one.id not in WITHOUT_METHOD for method in _methods_of(one)}
    methods = {name for name in dir(Client) if not name.startswith("_") and callable(getattr(Client, name))}
    assert methods - COMBINED == declared
    assert set(CALLS) == declared


def _call(client: Client, method: str) -> None:
    arguments, options = CALLS[method]
    answer = getattr(client, method)(*arguments, **options)
    if isinstance(answer, Iterator):
        next(answer)


def _sent(client: Client, deployment: Deployment, method: str) -> Received:
    """What a method sends; the deployment knows nothing of what it is asked for."""
    deployment.scripted.append(problem(404, "task_not_found", "there is nothing"))
    with pytest.raises(ApiError):
        _call(client, method)
    (received,) = deployment.received
    return received


@pytest.mark.parametrize("method", sorted(CALLS))
def test_a_method_sends_what_its_operation_declares(client: Client, deployment: Deployment, method: str) -> None:
    """Path, method, parameters, headers and body of each request are those that the operation of its name declares."""
    received = _sent(client, deployment, method)
    operation, _ = operation_at(received.method, received.path.removeprefix("/stage"))
    assert method in _methods_of(operation)
    raw_query = received.target.partition("?")[2]
    if operation.query is None:
        no_query(raw_query)
    else:
        read_query(operation.query, raw_query)
    takes = {header.name.lower() for header in operation.headers}
    conditions = {"if-match", "if-none-match", "idempotency-key"} & {name.lower() for name in received.headers}
    assert conditions <= takes
    if operation.body is None or operation.body is EmptyRequest:
        assert received.body == b""
    elif received.headers["Content-Type"] not in operation.body_types:
        document = read(received.body.decode(), depth=20)
        validated(operation.body, document.value)
