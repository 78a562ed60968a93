"""Creates a few resources of every kind, so that hostile requests find existing resources."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from tests.hostile.corpus import BODIES, PULLED, SCHEDULE, TASK

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.functions.api.gateway import Answer

NAMES = ("holidays", "nightly")
LOCK = "db-17"
_REFUSED = 400
_TRIES = 5
"""The number of attempts to lease tasks, because a queue may return messages one by one."""

# A deployed stack may not have the secret that the target's `auth` field names.
_TASK = {**TASK, "target": {key: value for key, value in TASK["target"].items() if key != "auth"}}


class Api(Protocol):
    """A client that sends requests to the api function."""

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
        """Send a request; `raw` is sent unchanged as the body, and `body` is sent as JSON."""


def furnished(api: Api) -> dict[str, Sequence[str]]:
    """Create a few resources of every kind, and return their identifiers by parameter name."""
    for name in NAMES:
        _made(api, "PUT", f"/v1/calendars/{name}", BODIES["putCalendar"])
        _made(api, "PUT", f"/v1/types/{name}", BODIES["putType"])
        definition = {**BODIES["putTopologyDefinition"], "name": name}
        _made(api, "PUT", f"/v1/topologies/definitions/{name}", definition)
        _made(api, "POST", "/v1/schedules", {**SCHEDULE, "name": name})
    backfill = _made(api, "POST", f"/v1/schedules/{NAMES[0]}/backfills", BODIES["createBackfill"])
    _made(api, "PUT", "/v1/switches/type/mail", BODIES["putSwitch"])
    _made(api, "PUT", f"/v1/rates/{LOCK}", BODIES["pinRate"])
    api_key = _made(api, "POST", "/v1/keys", BODIES["createApiKey"])
    # The local stack has no quotas.
    if _made(api, "GET", "/v1/settings", None)["quotas"] is not None:
        _made(api, "PUT", "/v1/quotas/local", BODIES["putQuotas"])
    for name in NAMES:
        _made(api, "PUT", f"/v1/intake-rules/{name}", BODIES["putIntakeRule"])
    tasks = [
        _made(api, "POST", "/v1/tasks", task)["id"]
        for task in (_TASK, {"type": "echo"}, {**_TASK, "lock": None, "unique": None})
    ]
    _made(api, "POST", "/v1/tasks", {"type": "echo", "group": {"id": "open"}})
    approval = _made(api, "POST", "/v1/tasks", {"type": "echo", "target": {"kind": "approval"}})["id"]
    links = [_made(api, "POST", f"/v1/tasks/{approval}/links", BODIES["createTaskLink"]) for _ in range(2)]
    graph = _made(api, "POST", "/v1/topologies", BODIES["createTopology"])["id"]
    return {
        "task_id": [*tasks, graph],
        "topology_id": [graph, tasks[0]],
        "name": NAMES,
        "scope": ("type", "owner"),
        "owner": ("local", "ann"),
        "key": (LOCK,),
        "group_id": ("open",),
        "unique_key": (_TASK["unique"]["key"],),
        "ordered_key": (_TASK["order"]["key"],),
        "key_id": [api_key["id"]],
        "link_id": [links[0]["id"]],
        "token": [link["url"].rpartition("/")[2] for link in links],
        "backfill_id": [backfill["id"]],
        "step": ("charge",),
        "lease_id": _leases(api),
    }


def _leases(api: Api) -> list[str]:
    """Two leases: a valid lease that holds the lock, and a lease whose task has finally failed and is a dead letter."""
    for _ in range(2):
        _made(api, "POST", "/v1/tasks", {"type": PULLED, "lock": {"key": LOCK, "max_holders": 2}})
    leases: list[str] = []
    for _ in range(_TRIES):
        wanted = {**BODIES["acquireLeases"], "max_tasks": 2, "lease_seconds": 600, "wait_seconds": 2}
        leases += [lease["id"] for lease in _made(api, "POST", "/v1/leases", wanted)["leases"]]
        if len(leases) == 2:
            break
    failed = {"error": {"type": "Boom", "message": "no such row"}, "retriable": False}
    _made(api, "POST", f"/v1/leases/{leases[0]}/fail", failed)
    return leases[::-1]


def _made(api: Api, method: str, path: str, body: object) -> Any:  # noqa: ANN401 - any JSON
    answer = api.send(method, path, body)
    assert answer.status < _REFUSED, answer.text
    return answer.body
