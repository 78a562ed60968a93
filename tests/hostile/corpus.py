"""Hostile requests, made by damaging valid requests for every operation. The same seed makes the same corpus."""

from __future__ import annotations

import base64
import json
import random
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from duetime.contract.openapi.document import OPERATIONS
from tests.hostile.texts import HEADERS, IDS, METHODS, PARAMETERS, QUERIES, SPECIAL, TEXTS, TYPES, VALUES

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from duetime.contract.http.operation import Operation

_EXISTING = 0.8
HOLE = "\x01hole\x01"
_QUOTED_HOLE = json.dumps(HOLE)

TASK: Mapping[str, Any] = {
    "type": "echo",
    "payload": {"a": [1, "x"]},
    "delay_seconds": 90,
    "priority": "low",
    "name": "n",
    "tags": {"team": "dba"},
    "retry": {"max_attempts": 2, "initial_seconds": 1, "multiplier": 2, "max_seconds": 9, "max_duration_seconds": 90},
    "timeout_seconds": 30,
    "notify_within_seconds": 60,
    "rollback_on_failure": True,
    "locks": [
        {"key": "db-17", "mode": "exclusive", "max_holders": 1, "scope": "task", "wait_seconds": 30},
        {"key": "gpu", "mode": "shared"},
    ],
    "rate": {"key": "crm", "limit": 50, "per_seconds": 1, "burst": 10},
    "target": {
        "kind": "http",
        "url": "http://127.0.0.1:9/x",
        "phases": ["rollback"],
        "queries": ["status"],
        "headers": {"X-A": "a"},
        "query": {"a": "b"},
        "success": [200],
        "auth": {"secret": "crm", "scheme": "header", "header": "X-Api-Key"},
        "response": {"keep": "all", "max_bytes": 9, "when_larger": "truncate"},
    },
    "callback_url": "http://127.0.0.1:9/y",
    "notify_on": {"to": "http://127.0.0.1:9/z", "failed": True, "late_seconds": 300, "running_seconds": 600},
    "expires_seconds": 600,
    "fair_key": "customer-17",
    "fair_weight": 3,
    "unique": {"key": "customer-17", "until": "ended", "on_conflict": "keep"},
    "order": {"key": "customer-17", "on_failure": "stop"},
    "allow_unknown_type": False,
}
_LABELS = (
    *("delay_seconds", "priority", "tags", "callback_url", "notify_on", "expires_seconds"),
    *("fair_key", "fair_weight"),
)
"""The fields that a task and a topology have in common."""
SCHEDULE: Mapping[str, Any] = {
    "name": "nightly",
    "cron": "30 1 * * *",
    "timezone": "Europe/London",
    "dst_gap": "skip",
    "dst_fold": "first",
    "overlap": "skip",
    "catch_up_seconds": 60,
    "catch_up_mode": "all",
    "extra_dates": ["2027-01-01T09:00:00Z"],
    "excluded_dates": ["2026-12-25", "2026-12-31T01:30:00"],
    "spread_seconds": 60,
    "jitter_seconds": 1,
    "calendars": ["holidays"],
    "expect_success_by": "06:00",
    "expect_every_seconds": 86_400,
    "expect_duration_factor": 2.5,
    "dialect": "cron",
    "start_at": "2026-01-01T00:00:00Z",
    "end_at": "2027-11-22T00:00:00Z",
    "remaining_runs": 90,
    "on_excluded": "next_day",
    "pause_on_failure": True,
    "task": {"type": "echo", "payload": 1, "notify_on": {"to": "http://127.0.0.1:9/z", "failed": True}},
}
PULLED = "pulled"
"""A task type that pull workers lease; the local environment also has this type."""
SWEEP: Mapping[str, Any] = {
    "filter": {"type": "mail", "tags": {"a": "b"}},
    "limit": 5,
    "dry_run": True,
    "order": "asc",
    "all": False,
    "per_second": 9,
    "reason": "why",
}
BODIES: Mapping[str, Any] = {
    "createTask": TASK,
    "previewTask": TASK,
    "pinRate": {"limit": 50, "per_seconds": 60, "burst": 10, "reason": "why"},
    **{key: {"reason": "why"} for key in ("pauseRate", "resumeRate", "resetRate")},
    "createUpload": {"id": "scan-17", "size": 3_000_000, "content_type": "image/png"},
    "createTaskBatch": {"tasks": [TASK, {"type": "echo"}]},
    # A payload that any task accepts; for a topology, the payload is the graph.
    "updateTask": {
        "due_at": "2026-12-01T09:00:00Z",
        "payload": {"nodes": {"a": {"type": "echo"}}},
        "tags": {"a": "b"},
        "lock": {"key": "db", "mode": "shared"},
        "locks": None,
    },
    **{key: {"reason": "why"} for key in ("pauseTask", "resumeTask", "runTask", "retryTask", "rollbackTask")},
    **{key: {"reason": "why"} for key in ("pauseTopology", "resumeTopology", "cancelTopology")},
    "retryTopology": {"reason": "why", "nodes": ["a"]},
    "resumeSchedule": {"reason": "why"},
    "runSchedule": {"payload": {"x": 1}, "due_at": "2027-01-01T09:00:00Z", "reason": "why"},
    "updateOccurrence": {
        "scheduled_at": "2027-01-01T09:00:00Z",
        "action": "move",
        "due_at": "2027-01-01T12:00:00Z",
        "reason": "why",
    },
    "closeGroup": {"on_complete": {"task": {"type": "echo"}, "rule": "all_success"}},
    "cancelGroup": {"force": False, "per_second": 5, "reason": "why"},
    "retryGroup": {"per_second": 5, "reason": "why"},
    "cancelTask": {"force": False, "include_children": False, "reason": "why"},
    "cancelTasksByFilter": {**SWEEP, "force": False},
    "updateTasksByFilter": {**SWEEP, "update": {"priority": "low"}},
    "retryTasksByFilter": {**SWEEP, "filter": {"error_type": "Boom"}},
    "deleteTasksByFilter": {**SWEEP, "filter": {"state": "failed", "error_type": "Boom"}},
    "createPurge": {
        "filter": {"type": "echo", "state": "failed", "finished_before": "2026-12-01T09:00:00Z"},
        "owner": "local",
        "open_tasks": "refuse",
        "per_second": 9,
        "reason": "why",
    },
    "reportOutcome": {"fence": 1, "outcome": "succeeded", "result": {"x": 1}},
    "signalTask": {"approve": True, "payload": {"x": 1}, "reason": "why"},
    "sendSignal": {"name": "order.paid", "key": "order-4711", "payload": {"x": 1}},
    "createTaskLink": {
        "actions": ["approve", "reject"],
        "expires_seconds": 600,
        "message": "Pay £500 to Ann?",
        "takes_payload": True,
    },
    "useTaskLink": {"action": "approve", "payload": {"x": 1}, "reason": "why"},
    "reportHeartbeat": {"fence": 1},
    "reportProgress": {"fence": 1, "percent": 40, "message": "on the way"},
    "queryTask": {"action": "progress"},
    "acquireLeases": {
        "types": [PULLED],
        "max_tasks": 1,
        "wait_seconds": 0,
        "lease_seconds": 30,
        "acknowledge_within_seconds": 10,
        "worker": "w",
    },
    "pauseSchedulesByTag": {"filter": {"tags": {"a": "b"}}, "reason": "why"},
    "resumeSchedulesByTag": {"filter": {"tags": {"c": "d"}}, "reason": "why"},
    "putType": {
        "priority": "low",
        "retry": {"max_attempts": 3},
        "timeout_seconds": 30,
        "notify_within_seconds": 60,
        "rollback_on_failure": False,
        "locks": [{"key": "db"}],
        "rate": {"key": "smtp", "limit": 10},
        "notify_on": {"to": "https://example.org/alerts", "failed": True},
        "expires_seconds": 600,
        "fair_key": "customer-17",
        "fair_weight": 3,
        "unique": {"key": "one"},
    },
    "createApiKey": {
        "name": "billing worker",
        "roles": ["writer", "worker"],
        "owner": "billing",
        "expires_at": "2027-11-21T00:00:00Z",
    },
    "putIntakeRule": {
        "pattern": {"source": [{"prefix": "com."}], "detail": {"size": [{"numeric": [">", 1]}, {"exists": False}]}},
        "create": {"task": TASK, "fields": {"payload.order": "detail.order", "tags.b": "to_string(detail.id)"}},
        "owner": "ann",
        "description": "why",
    },
    "putQuotas": {
        "creates_per_second": 1_000_000,
        "payload_bytes_per_second": 1_000_000_000,
        "reads_per_second": 1_000_000,
        "open_tasks": 1_000_000,
        "concurrent_attempts": 10_000,
        "schedules": 10_000,
        "topology_nodes": 1_000_000,
        "long_polls": 1_000,
        "pull_leases": 1_000,
        "reason": "for now",
    },
    "putSwitch": {
        "stopped": False,
        "max_concurrent": 3,
        "rate": {"limit": 50, "per_seconds": 1, "burst": 10},
        "reason": "for now",
    },
    "createSchedule": SCHEDULE,
    "updateSchedule": {"cron": "0 2 * * *"},
    "previewSchedule": {"cron": "30 1 * * *", "timezone": "Europe/London", "count": 3},
    "createBackfill": {
        "scheduled_after": "2026-11-01T00:00:00Z",
        "scheduled_before": "2026-11-02T00:00:00Z",
        "per_minute": 5,
        "only_missing": False,
        "overlap": "buffer_all",
    },
    "putCalendar": {
        "mode": "excludes",
        "timezone": "Europe/London",
        "dates": {"2026-12-25": "Christmas Day"},
        "except_dates": ["2026-12-26"],
        "weekdays": ["sat"],
        "windows": [{"start": "22:00", "end": "06:00", "weekdays": ["sun"]}],
        "spans": [{"start": "2026-12-24T12:00:00Z", "end": "2026-12-27T00:00:00Z", "reason": "freeze"}],
        "known_until": "2029-01-01T00:00:00Z",
    },
    "renewLease": {"percent": 5, "message": "on", "checkpoint": {"at": 17}},
    "putLeaseStep": {"result": {"at": 17}, "duration_ms": 5},
    "completeLease": {"result": {"x": 1}},
    "failLease": {
        "error": {"type": "Boom", "message": "no such row"},
        "retriable": True,
        "retry_in_seconds": 5,
        "traceback": "line 1",
    },
    "acknowledgeLeasePause": {"checkpoint": {"at": 17}},
    "putTopologyDefinition": {
        "description": "Every night",
        "parameters": {"rows": {"type": "integer", "default": 3, "enum": [3, 4], "description": "How many."}},
        "nodes": {"a": {"type": "echo", "payload": {"rows": "<duetime.parameters.rows>"}}},
        "on_failure": "stop",
        "timeout_seconds": 600,
        "outputs": ["a"],
        "name": "nightly",
    },
    "runTopologyDefinition": {"version": 1, "parameters": {"rows": 3}, "name": "n"},
    "createTopology": {
        "nodes": {
            "a": {"type": "echo"},
            "b": {"type": "echo", "depends_on": ["a"], "when": "parents.a.result.ok"},
            "c": {"type": "echo", "depends_on": ["a"], "map": {"over": "parents.a.result", "max_parallel": 2}},
        },
        "on_failure": "stop",
        "outputs": ["b"],
        "name": "n",
    },
}
_PREVIEWED = (
    *("cron", "dialect", "timezone", "dst_gap", "dst_fold", "start_at", "end_at", "remaining_runs"),
    *("extra_dates", "excluded_dates", "spread_seconds", "jitter_seconds", "calendars", "on_excluded", "name"),
)
_CREATIONS: Sequence[Any] = [
    {"type": "echo", "lock": {"key": "db-17", "mode": "shared", "max_holders": 2, "scope": "run", "wait_seconds": 30}},
    {"type": "echo", "due_at": "2026-12-01T09:00:00Z", "parent_task_id": None, "group": {"id": "open"}},
    {"type": "echo", "group": {"id": "open"}},
    {"type": "echo", "after": [], "trigger_rule": "all_done"},
    {"type": "echo", "payload": {"$binary": {"base64": "iVBORw0KGgo=", "content_type": "image/png"}}},
    {"type": "echo", "payload": {"$binary": {"base64": "AA=="}}},
    {"type": "echo", "debounce": {"key": "order-3", "seconds": 60, "max_seconds": 600}},
    {
        "type": "topology",
        "target": {
            "kind": "topology",
            "definition": {"name": "nightly", "version": 1, "parameters": {"rows": 3}},
        },
    },
]
MORE_BODIES: Mapping[str, Sequence[Any]] = {
    "putIntakeRule": (
        {
            "pattern": {
                "$or": [{"source": [{"anything-but": {"suffix": "x"}}]}, {"detail": {"a": [{"wildcard": "*b"}]}}]
            },
            "cancel": {"filter": {"type": "echo"}, "fields": {"tags.order": "detail.id"}, "force": True},
        },
        {
            "pattern": {"source": ["com.example.orders"]},
            "signal": {"name": "a", "key": "b", "payload": {"x": 1}, "fields": {"key": "detail.id"}},
        },
    ),
    "createTask": _CREATIONS,
    "previewTask": _CREATIONS,
    "updateTask": [
        {
            **{
                key: value
                for key, value in TASK.items()
                if key not in {"type", "allow_unknown_type", "unique", "order"}
            },
            "payload": {"nodes": {"a": {"type": "echo"}}},
        }
    ],
    "putType": [{"lock": {"key": "db", "mode": "shared"}}],
    "createPurge": [{"task_ids": ["01M7XZ8CGJ0013P2ZBN3YDT3DX"]}, {"all": True, "owner": "nobody"}],
    "signalTask": [{"approve": False, "reason": "why"}],
    "runSchedule": [{"delay_seconds": 60}],
    "createTaskLink": [{"actions": ["watch"]}, {"actions": ["complete", "fail"], "takes_payload": True}],
    "useTaskLink": [{"action": "reject", "reason": "why"}],
    "reportOutcome": [{"fence": 1, "outcome": "failed", "error": {"type": "B", "message": "m"}, "retriable": False}],
    "createSchedule": [
        {"name": "a", "rate": "5 minutes", "task": {"type": "echo"}},
        {"name": "b", "interval": "PT1H", "task": {"type": "echo"}},
        {"name": "c", "dates": ["2027-01-01T09:00:00Z"], "task": {"type": "echo"}},
        {"name": "d", "permanent": {"gap_seconds": 60}, "task": {"type": "echo"}},
        {"name": "e", "timings": [{"cron": "0 9 * * 1"}, {"rate": "2 hours"}], "task": {"type": "echo"}},
    ],
    "updateSchedule": [
        {"rate": "5 minutes", "permanent": None, "task": {"payload": 2}},
        {"interval": "PT1H", "overlap": "skip", "task": {"order": {"key": "nightly", "on_failure": "stop"}}},
        {"dates": ["2027-01-01T09:00:00Z"], "expect_success_by": None},
        {"timings": [{"cron": "0 9 * * 1"}]},
        {name: SCHEDULE[name] for name in SCHEDULE if name != "name"},
    ],
    "previewSchedule": [
        {"rate": "5 minutes", "from": "2026-11-22T00:00:00Z"},
        {"interval": "PT1H", "count": 3},
        {"dates": ["2027-01-01T09:00:00Z"]},
        {"permanent": {"gap_seconds": 60}},
        {"timings": [{"cron": "0 9 * * 1"}, {"rate": "2 hours"}]},
        {name: SCHEDULE[name] for name in _PREVIEWED},
    ],
    "pauseSchedule": [{"reason": "why"}],
    "runTopologyDefinition": [
        {
            **{key: TASK[key] for key in _LABELS},
            "type": "nightly",
            "unique": {"key": "nightly", "until": "ended", "on_conflict": "refuse"},
        },
        {
            "due_at": "2026-12-01T09:00:00Z",
            "parent_task_id": None,
            "order": {"key": "graph-3"},
            "group": {"id": "open"},
        },
        {"after": [], "trigger_rule": "all_done"},
        {"debounce": {"key": "graph-3", "seconds": 60}},
    ],
    "createTopology": [
        {
            "nodes": {"a": {"type": "echo", "tags": {"a": "b"}}},
            **{key: TASK[key] for key in _LABELS},
            "timeout_seconds": 600,
            "type": "nightly",
            "unique": {"key": "nightly", "until": "ended", "on_conflict": "refuse"},
        },
        {
            "nodes": {"a": {"type": "echo"}},
            "due_at": "2026-12-01T09:00:00Z",
            "parent_task_id": None,
            "group": {"id": "open"},
            "order": {"key": "g"},
        },
        {"nodes": {"a": {"type": "echo"}}, "after": [], "trigger_rule": "all_done"},
        {"nodes": {"a": {"type": "echo"}}, "debounce": {"key": "graph-3", "seconds": 60}},
    ],
}
"""Additional valid bodies of an operation, with fields that the first body lacks or cannot be combined with."""
QUERIES_OF: Mapping[str, str] = {
    "listPublicKeys": "owner=ann",
    "getTopologyDefinitionDiff": "from=1&to=1",
    "getTopologyDefinition": "version=1",
    "listTopologies": "definition=nightly&limit=5",
    "listTopologyNodes": "limit=1",
    "createTask": "estimate=1",
    "createTaskBatch": "estimate=true",
    "createTopology": "estimate=1",
    "createSchedule": "estimate=1",
    "explainSchedule": "at=2026-11-21T01:30:00Z",
    "listTasks": "state=scheduled&limit=5",
}
"""The required and optional query parameters of an operation."""


@dataclass(frozen=True)
class Hostile:
    """A request in the form in which the gateway passes it on."""

    method: str
    path: str
    query: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    raw: str | None = None
    is_base64: bool = False


class Corpus:
    """An endless sequence of requests.

    Args:
        seed: the seed of all random choices.
        known: the ids of existing resources, by the name of their path parameter.
    """

    def __init__(self, seed: int, known: Mapping[str, Sequence[str]]) -> None:
        self._chance = random.Random(seed)  # noqa: S311 - no secret: the same seed must make the same requests
        self._known = known
        self._hurts: tuple[Callable[[Hostile], Hostile], ...] = (
            *[self._value] * 8,
            *[self._bytes] * 2,
            *[self._encoding] * 2,
            self._header,
            self._query,
            self._path,
            self._method,
        )

    def __iter__(self) -> Iterator[Hostile]:
        while True:
            request = self.good(self._chance.choice(OPERATIONS))
            for _ in range(self._chance.choice((1, 1, 1, 2, 3))):
                request = self._chance.choice(self._hurts)(request)
            yield request

    def good(self, operation: Operation, existing: float = _EXISTING) -> Hostile:
        """An undamaged request, mostly for existing resources."""
        path = re.sub(r"\{(\w+)\}", lambda parameter: self._named(parameter[1], existing), operation.path)
        body = self._chance.choice((BODIES.get(operation.id, {}), *MORE_BODIES.get(operation.id, ())))
        if operation.method == "PUT" and "name" in body:
            # A definition may repeat its own name, but may not contain another name.
            body = {**body, "name": path.rpartition("/")[2]}
        raw = json.dumps(body) if operation.method in {"POST", "PUT", "PATCH"} else None
        return Hostile(operation.method, path, QUERIES_OF.get(operation.id, ""), {}, raw)

    def _named(self, parameter: str, existing: float) -> str:
        """The value for a path parameter."""
        known = self._known.get(parameter, ())
        return self._chance.choice(known if known and self._chance.random() < existing else IDS)

    def _value(self, request: Hostile) -> Hostile:
        """A body with a different value in one place, or with a missing or an additional field."""
        body = _parsed(request.raw)
        if not body:
            return self._chance.choice((self._header, self._query))(request)
        text = self._chance.choice(self._chance.choice((VALUES, SPECIAL)))
        way = self._chance.random()
        holed = self._holed(body, way)
        return _with(request, raw=json.dumps(holed).replace(_QUOTED_HOLE, text))

    def _holed(self, body: Any, way: float) -> Any:  # noqa: ANN401 - any JSON
        """The body, in which a value was replaced by a placeholder, or a field was removed or added."""
        places = list(_places(body))
        if not places or way < 0.05:
            return HOLE
        parent, key = self._chance.choice(places)
        if way < 0.15 and isinstance(parent, dict):
            del parent[key]
        elif way < 0.25 and isinstance(parent, dict):
            parent[self._chance.choice(("", "x", "owner", "id", "\ud800", "__class__", key.upper()))] = HOLE
        else:
            parent[key] = HOLE
        return body

    def _bytes(self, request: Hostile) -> Hostile:
        """A body that was truncated, doubled, changed, or padded."""
        raw = request.raw or "{}"
        at = self._chance.randrange(len(raw) + 1)
        hurts: tuple[Callable[[], str], ...] = (
            lambda: raw[:at],
            lambda: raw + raw,
            lambda: raw[:at] + self._chance.choice(('"', "\\", "\x00", "{", "}", ",", "\ud800", "\u00a0")) + raw[at:],
            lambda: "\ufeff" + raw,
            lambda: " " * 400_000 + raw,
            lambda: raw.replace(":", ": \t\r\n"),
            lambda: raw.replace('"type"', '"type":"x","type"', 1),
            raw.swapcase,
            lambda: "",
            lambda: json.dumps(raw),
        )
        return _with(request, raw=self._chance.choice(hurts)())

    def _encoding(self, request: Hostile) -> Hostile:
        """A body in a different encoding, with a flag that may indicate yet another encoding."""
        raw = (request.raw or "{}").encode("utf-8", "surrogatepass")
        text = raw.decode("utf-8", "replace")
        chosen = self._chance.choice(
            (
                (base64.b64encode(raw).decode(), True),
                (base64.b64encode(raw).decode(), False),
                (text, True),
                (base64.b64encode(text.encode("utf-16")).decode(), True),
                (base64.b64encode(text.encode("utf-32")).decode(), True),
                (base64.b64encode(b"\xff\xfe\xfd" + raw).decode(), True),
                (base64.b64encode(b"\xef\xbb\xbf" + raw).decode(), True),
                (base64.b64encode(self._chance.randbytes(64)).decode(), True),
                (base64.b64encode(b"\x1f\x8b\x08" + raw).decode(), True),
                (base64.b64encode(raw).decode().rstrip("=") + "\n", True),
                (base64.b64encode(b"[" * 300_000).decode(), True),
            )
        )
        return _with(request, raw=chosen[0], is_base64=chosen[1])

    def _header(self, request: Hostile) -> Hostile:
        name = self._chance.choice(HEADERS)
        value = self._chance.choice(TYPES if name == "Content-Type" else TEXTS)
        return request if value is None else _with(request, headers={**request.headers, name: value})

    def _query(self, request: Hostile) -> Hostile:
        pairs = [
            f"{self._chance.choice(PARAMETERS)}={self._chance.choice(TEXTS)}" for _ in range(self._chance.randint(1, 3))
        ]
        return _with(request, query=self._chance.choice(("&".join(pairs), self._chance.choice(QUERIES))))

    def _path(self, request: Hostile) -> Hostile:
        path = request.path
        hurts: tuple[Callable[[], str], ...] = (
            lambda: path + "/",
            lambda: path + "/" + self._chance.choice(IDS),
            lambda: path.replace("/v1", "/v2", 1),
            lambda: path.replace("/", "//", 1),
            path.upper,
            lambda: "/v1/../v1" + path,
            lambda: "/",
            lambda: "",
            lambda: "/v1/tasks/" + self._chance.choice(IDS),
            lambda: "/v1/schedules/" + self._chance.choice(IDS),
            lambda: path + "?x=y",
            lambda: path + "\x00",
        )
        return _with(request, path=self._chance.choice(hurts)())

    def _method(self, request: Hostile) -> Hostile:
        return _with(request, method=self._chance.choice(METHODS))


def _with(request: Hostile, **changes: Any) -> Hostile:  # noqa: ANN401 - fields of a request
    return Hostile(**{**request.__dict__, **changes})


def _parsed(raw: str | None) -> Any:  # noqa: ANN401 - any JSON
    try:
        return None if raw is None or len(raw) > 10_000 else json.loads(raw)
    except (ValueError, RecursionError):
        return None


def _places(value: Any) -> Iterator[tuple[Any, Any]]:  # noqa: ANN401 - any JSON
    """Every place in a JSON value, given by the place's container and the key in this container."""
    keys = value.keys() if isinstance(value, dict) else range(len(value)) if isinstance(value, list) else ()
    for key in list(keys):
        yield value, key
        yield from _places(value[key])
