"""Compares the client with the operations that the API declares."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from inspect import getmembers
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import duetime_client
from duetime.contract.http.operation import no_query, operation_at, read_query
from duetime.contract.http.request_json import read
from duetime.contract.http.validation_errors import validated
from duetime.contract.openapi.document import OPERATIONS
from duetime.contract.tasks.operations import EmptyRequest
from duetime_client import ApiError, Client
from duetime_client.resource import Operation, Resource, Stream
from tests.client.deployment import problem

if TYPE_CHECKING:
    from duetime.contract.http.operation import Operation as ApiOperation
    from tests.client.deployment import Deployment, Received

_ANYTHING: tuple[Any, ...] = ("a",)
_TOLD: tuple[Any, ...] = ("a", 1)
_STRETCH: tuple[Any, ...] = ("a", "2026-11-01T00:00:00Z", "2026-11-02T00:00:00Z")
_FILTER: tuple[Any, ...] = ({"type": "mail", "tags": {"team": "dba"}},)
_TIMED: dict[str, Any] = {"cron": "30 1 * * *", "timezone": "Europe/London"}
_LISTED: dict[str, Any] = {"page_size": 5, "tags": {"team": "dba"}, "due_after": "2026-11-01T00:00:00Z", "order": "asc"}
_BULK: dict[str, Any] = {"limit": 5, "dry_run": True, "order": "asc", "next_token": "t"}

CALLS: dict[str, tuple[tuple[Any, ...], dict[str, Any]]] = {
    "tasks.query": (("a", "status"), {}),
    "schedules.cancel_backfill": (("a", "b"), {}),
    "schedules.update_occurrence": (("a", "2027-01-01T01:30:00Z", "skip"), {}),
    "tasks.cancel": (_ANYTHING, {"force": True, "reason": "why"}),
    "tasks.delete": (_ANYTHING, {"if_match": '"1"'}),
    "topologies.delete": (_ANYTHING, {"if_match": '"1"'}),
    "tasks.cancel_by_filter": (_FILTER, {"force": True, **_BULK}),
    "tasks.update": (_ANYTHING, {"if_match": '"1"', "reason": "why", "name": "n"}),
    "tasks.update_by_filter": ((*_FILTER, {"name": "n"}), _BULK),
    "schedules.explain": (("a", _STRETCH[1]), {}),
    "schedules.create_backfill": (_STRETCH, {"per_minute": 5, "only_missing": False, "overlap": "buffer_all"}),
    "schedules.get_backfill": (("a", "b"), {}),
    "leases.complete": (("a", {"rows": 17}), {}),
    "schedules.create": (_ANYTHING, {"task": {"type": "mail"}, "estimate": True, **_TIMED}),
    "tasks.create": (("mail",), {"idempotency_key": "k", "wait_seconds": 5, "estimate": True, "delay_seconds": 1}),
    "tasks.create_upload": ((b"x",), {"idempotency_key": "k"}),
    "tasks.preview": (("mail",), {"delay_seconds": 1}),
    "tasks.create_batch": (([{"type": "mail"}],), {"idempotency_key": "k"}),
    "topologies.create": (({"nodes": {"a": {"type": "mail"}}},), {"idempotency_key": "k", "estimate": True}),
    "signals.send": (("a", "b", {"x": 1}), {"idempotency_key": "k"}),
    "intake_rules.delete": (("a",), {}),
    "intake_rules.get": (("a",), {}),
    "intake_rules.put": (("a", {"pattern": {"source": ["a"]}, "create": {"task": {"type": "mail"}}}), {}),
    "quotas.delete": (("ann",), {}),
    "quotas.get": (("ann",), {}),
    "quotas.put": (("ann", {"creates_per_second": 5, "open_tasks": 100}), {"reason": "why"}),
    "signing_secrets.list_public_keys": (("ann",), {}),
    "switches.delete": (("type", "mail"), {}),
    "types.delete": (("mail",), {}),
    "types.get": (("mail",), {}),
    "task_links.create": (
        ("a", ["approve", "reject"]),
        {"expires_seconds": 600, "message": "Pay Ann?", "takes_payload": True},
    ),
    "task_links.delete": (("a", "0" * 20), {}),
    "task_links.use": (("dtl_a", "approve", {"limit": 5}), {"reason": "why"}),
    "api_keys.create": (("billing", ["writer"]), {"owner": "billing", "expires_at": "2027-01-01T00:00:00Z"}),
    "types.put": (("mail",), {"timeout_seconds": 30, "retry": {"max_attempts": 3}, "lock": None}),
    "leases.fail": (("a", "Boom", "no such row"), {"retriable": False, "traceback": "at main.go:17"}),
    "switches.get": (("type", "mail"), {}),
    "leases.acquire": ((["mail"],), {"max_tasks": 2, "wait_seconds": 1, "lease_seconds": 60, "worker": "w"}),
    "dead_letters.list": ((), {"error_type": "Boom", **_LISTED}),
    "schedules.list_runs": (
        _ANYTHING,
        {"status": ["failed"], "scheduled_after": _STRETCH[1], "scheduled_before": _STRETCH[2], "page_size": 5},
    ),
    "schedules.list_occurrences": (
        _ANYTHING,
        {"scheduled_after": _STRETCH[1], "scheduled_before": _STRETCH[2], "limit": 5},
    ),
    "schedules.list": (
        (),
        {"state": "paused", "type": "mail", "tags": {"team": "dba"}, "name_prefix": "n", "page_size": 5},
    ),
    "schedules.run": (_ANYTHING, {"payload": None, "due_at": "2026-12-01T09:00:00Z", "reason": "why"}),
    "topologies.list_nodes": (_ANYTHING, {"page_size": 5}),
    "topologies.list": ((), {"state": "failed", "definition": "nightly", **_LISTED}),
    "topology_definitions.list": ((), {}),
    "topology_definitions.get": (_ANYTHING, {"version": 3}),
    "topology_definitions.put": (("a", {"nodes": {"a": {"type": "mail"}}}), {"if_match": '"1"'}),
    "topology_definitions.delete": (_ANYTHING, {"if_match": '"1"'}),
    "topology_definitions.list_versions": (_ANYTHING, {}),
    "topology_definitions.get_diff": (("a", 1, 2), {}),
    "topology_definitions.run": (
        ("a", {"region": "eu"}),
        {"version": 3, "idempotency_key": "k", "delay_seconds": 1, "tags": {"a": "b"}},
    ),
    "tasks.list": ((), {"state": "failed", "expand": ["payload", "result"], **_LISTED}),
    "tasks.notify_failure": (("a", 1, "Boom", "no such row"), {"retriable": False}),
    "tasks.approve": (("a", {"limit": 500}), {"reason": "why"}),
    "tasks.notify_success": (("a", 1, {"rows": 17}), {}),
    "leases.acknowledge_pause": (("a", {"row": 17}), {}),
    "schedules.pause": (("a", "why"), {}),
    "schedules.pause_by_tag": (({"team": "dba"},), {"reason": "why"}),
    "schedules.resume_by_tag": (({"team": "dba"},), {"reason": "why"}),
    "schedules.preview": ((), {"start": _STRETCH[1], "count": 5, **_TIMED}),
    "calendars.put": (_ANYTHING, {"dates": ["2026-12-25"], "timezone": "Europe/London"}),
    "calendars.put_icalendar": (("a", b"BEGIN:VCALENDAR"), {"mode": "includes", "timezone": "Europe/London"}),
    "switches.put": (
        ("type", "mail"),
        {"stopped": True, "max_concurrent": 5, "rate": {"limit": 5, "per_seconds": 60, "burst": 1}, "reason": "why"},
    ),
    "rates.pin": (("crm", 5), {"per_seconds": 60, "burst": 1, "reason": "why"}),
    "topologies.retry": (("a",), {"nodes": ["a"], "reason": "why"}),
    "groups.get": (_ANYTHING, {"wait_seconds": 5}),
    "groups.close": (_ANYTHING, {"task": {"type": "mail"}, "rule": "one_failed", "traceparent": "00-1"}),
    "groups.cancel": (_ANYTHING, {"force": True, "per_second": 5.0, "reason": "why"}),
    "groups.retry": (_ANYTHING, {"per_second": 5.0, "reason": "why"}),
    "tasks.retry_by_filter": (({"error_type": "Boom"},), _BULK),
    "tasks.delete_by_filter": (({"state": "failed", "error_type": "Boom"},), _BULK),
    "leases.renew": (("a", 5, "on"), {"checkpoint": {"row": 17}}),
    "leases.put_step": (("a", "charge", {"rows": 17}), {"duration_ms": 5}),
    "tasks.report_heartbeat": (_TOLD, {}),
    "tasks.report_progress": (("a", 1, 40, "on"), {}),
    "schedules.update": (_ANYTHING, {"reason": "why", "if_match": '"1"', "task": {"type": "mail"}, **_TIMED}),
    **dict.fromkeys(
        (
            *(
                "bulk_operations.cancel",
                "leases.acknowledge_cancel",
                "api_keys.revoke",
                "task_links.list",
                "task_links.get",
                "calendars.delete",
                "schedules.delete",
            ),
            *(
                "locks.release",
                "rates.get",
                "rates.unpin",
                "unique_keys.get",
                "ordered_keys.get",
                "bulk_operations.get",
                "purges.get",
                "calendars.get",
                "locks.get",
                "schedules.get",
                "tasks.get",
            ),
            *("topologies.get", "tasks.list_attempts", "tasks.list_events", "leases.release"),
            *("tasks.list_steps", "leases.list_steps"),
            *("schedules.list_backfills", "schedules.list_events", "tasks.explain"),
        ),
        (_ANYTHING, {}),
    ),
    **dict.fromkeys(
        (
            *("topologies.cancel", "tasks.pause", "topologies.pause", "tasks.resume", "topologies.resume"),
            *("tasks.retry", "tasks.rollback", "tasks.run", "tasks.reject"),
            "schedules.resume",
            *("rates.pause", "rates.resume", "rates.reset"),
        ),
        (_ANYTHING, {"reason": "why"}),
    ),
    "purges.create": (
        (),
        {
            "task_ids": ["a"],
            "filter": {"type": "x"},
            "all": True,
            "owner": "o",
            "open_tasks": "cancel",
            "per_second": 1.0,
            "reason": "why",
        },
    ),
    **dict.fromkeys(
        (
            "watch_tickets.create",
            "signing_secrets.list",
            "api_keys.list",
            "settings.get",
            "dispatch.get_status",
            "summary.get",
            "summary.list_owners",
            "schedules.get_forecast",
            "bulk_operations.list",
            "calendars.list",
            "groups.list",
            "locks.list",
            "rates.list",
            "unique_keys.list",
            "ordered_keys.list",
            "intake_rules.list",
            "quotas.list",
            "switches.list",
            "types.list",
        ),
        ((), {}),
    ),
}
"""Each method that sends a request, with arguments that set everything that the method can send."""
COMBINED = {
    *(
        "bulk_operations.follow",
        "purges.follow",
        "exports.read",
        "tasks.count",
        "tasks.download_payload",
        "tasks.follow",
        "topologies.follow",
        "tasks.wait",
        "dead_letters.retry",
    ),
    *("tasks.watch", "topologies.watch", "schedules.watch"),
}
"""Methods that send their requests through other methods."""
NAMED_OTHERWISE = {
    "listTasks": {"tasks.list", "dead_letters.list"},
    "reportOutcome": {"tasks.notify_success", "tasks.notify_failure"},
    "signalTask": {"tasks.approve", "tasks.reject"},
    "putCalendar": {"calendars.put", "calendars.put_icalendar"},
}
"""Operations whose methods are named differently."""
WITHOUT_METHOD = {"getHealth", "getApiIndex", "getOpenApiDocument"}
"""Operations that only monitoring systems and client generators use."""

_OF_A_LEASE = "a lease's id is known to the worker that acquired it: duetime worker run"
WITHOUT_COMMAND = {
    "createUpload": "duetime tasks create --payload-file uploads a large file by itself",
    "acquireLeases": "it would lease tasks to nobody: duetime worker run",
    **dict.fromkeys(
        (
            *("renewLease", "completeLease", "failLease", "releaseLease"),
            *("acknowledgeLeasePause", "acknowledgeLeaseCancel", "listLeaseSteps", "putLeaseStep"),
        ),
        _OF_A_LEASE,
    ),
    "listTopologyNodes": "it reads nodes in pages; duetime topologies show reads all of them",
    "getSettings": "it is what the console offers; a command learns from the answer to its request what is allowed",
    "getPurge": "duetime purge follows a purge to its receipt",
    "createWatchTicket": "a ticket is good for one connection, which duetime watch opens",
    **dict.fromkeys(("getTaskLink", "useTaskLink"), "it is for people who have a link, and no command"),
    "getApiIndex": "it is for programs that find their way by links",
    "getHealth": "it is for monitors",
    "getOpenApiDocument": "it is for generators of clients",
}
"""Operations that no command requests, each with the reason."""
COMMANDS = ("commands", "manifests")
"""The packages that contain the commands and the code with which commands read files."""


def _names_of(method: str) -> set[str]:
    """Return the operation names that a method can have, like `cancel_tasks_by_filter` for `tasks.cancel_by_filter`."""
    resource, name = method.split(".")
    verb, _, rest = name.partition("_")
    singular = _SINGULAR.get(resource, resource.removesuffix("s"))
    return {name, *("_".join(filter(None, (verb, noun, rest))) for noun in (singular, resource))}


_SINGULAR = {"switches": "switch", "topologies": "topology"}
METHODS = {
    f"{resource}.{name}"
    for resource, operations in getmembers(Client("http://localhost"), lambda value: isinstance(value, Resource))
    for name, value in getmembers(type(operations))
    if isinstance(value, Operation | Stream)
}
"""The methods of all client resources."""


def _methods_of(operation: ApiOperation) -> set[str]:
    snake = re.sub(r"[A-Z]", lambda letter: f"_{letter[0].lower()}", operation.id)
    return NAMED_OTHERWISE.get(operation.id, {method for method in METHODS if snake in _names_of(method)})


def test_every_operation_has_exactly_one_client_method() -> None:
    """The client has exactly one method for each declared operation."""
    found = {one.id: _methods_of(one) for one in OPERATIONS if one.id not in WITHOUT_METHOD}
    assert {id_: methods for id_, methods in found.items() if len(methods) != 1} == NAMED_OTHERWISE
    assert set.union(*found.values()) == METHODS - COMBINED
    assert set(CALLS) == METHODS - COMBINED


def _methods_called() -> set[str]:
    """Return the client methods that commands call."""
    modules = [file for folder in COMMANDS for file in Path(duetime_client.__path__[0], folder).rglob("*.py")]
    nodes = (node for file in modules for node in ast.walk(ast.parse(file.read_text())))
    return {
        f"{node.value.attr}.{node.attr}"
        for node in nodes
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Attribute)
    } & METHODS


def test_every_operation_has_a_command_or_a_listed_reason() -> None:
    """Every operation either has a command or is listed with the reason why no command exists."""
    called = _methods_called()
    lacking = {one.id: _methods_of(one) - called for one in OPERATIONS if not _methods_of(one) & called}
    assert lacking.keys() == WITHOUT_COMMAND.keys()
    in_part = {method for one in OPERATIONS if one.id not in lacking for method in _methods_of(one) - called}
    assert in_part == set()


def _call(client: Client, method: str) -> None:
    arguments, options = CALLS[method]
    answer = attrgetter(method)(client)(*arguments, **options)
    if isinstance(answer, Iterator):
        next(answer)


def _sent(client: Client, deployment: Deployment, method: str) -> Received:
    """Return the request that a method sends; the deployment accepts any request."""
    deployment.scripted.append(problem(404, "task_not_found", "there is nothing"))
    with pytest.raises(ApiError):
        _call(client, method)
    (received,) = deployment.received
    return received


@pytest.mark.parametrize("method", sorted(CALLS))
def test_a_method_sends_what_its_operation_declares(client: Client, deployment: Deployment, method: str) -> None:
    """A method sends the path, HTTP method, parameters, headers and body that its operation declares."""
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
