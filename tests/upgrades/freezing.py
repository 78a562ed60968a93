"""Writes the items of the present code into `frozen/v<schema>/`, one file for each scene; existing files stay.

python -m tests.upgrades.freezing
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duetime import composition
from duetime.adapters.dynamodb.schema import SCHEMA_VERSION
from duetime.composition import composed
from duetime.composition.attempts import LockServices
from duetime.composition.core import CoreServices
from duetime.composition.tasks import TaskServices, TopologyServices
from duetime.composition.worker import WorkerServices
from duetime.domain.circuit_breakers import Circuit
from duetime.domain.ids import TaskId
from duetime.domain.tasks.attempt_results import Deferred, Yielded
from duetime.domain.tasks.attempt_run import Run
from duetime.domain.times import HOUR, SECOND
from tests.functions.api.world import claimed_by_a_worker
from tests.functions.stack import OWNER
from tests.upgrades.life import Life

if TYPE_CHECKING:
    from collections.abc import Callable

FROZEN = Path(__file__).parent / "frozen"
PAYLOAD = {
    "rows": [1, 2.5, None, True, "ü"],
    "text": "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
}
BACKFILLS = "/v1/schedules/hourly/backfills"
DEFINITIONS = "/v1/topologies/definitions"
BIG = {"rows": [f"{number * 7919 % 100_003:x}" for number in range(2_000)]}


def scheduled(life: Life) -> None:
    """Tasks that wait for their time, with every field that a user can set."""
    life.create(delay_seconds=60)
    life.create(
        payload=PAYLOAD,
        delay_seconds=3_600,
        name="a name",
        tags={"team": "dba", "x": ""},
        retry={"max_attempts": 3, "initial_seconds": 0.5, "multiplier": 3, "max_seconds": 60},
        timeout_seconds=30,
        notify_within_seconds=600,
        rollback_on_failure=True,
        lock={"key": "db-17", "max_holders": 2, "scope": "run"},
    )
    life.create(
        delay_seconds=60,
        retry={"max_duration_seconds": 600},
        locks=[{"key": "db-17", "wait_seconds": 30}, {"key": "gpu", "mode": "shared"}],
        rate={"key": "crm", "limit": 10, "per_seconds": 60},
        expires_seconds=86_400,
        fair_key="customer-17",
        fair_weight=3,
        unique={"key": "one"},
        order={"key": "customer-17", "on_failure": "stop"},
        notify_on={"failed": True, "late_seconds": 60, "running_seconds": 900, "to": "https://example.org/notices"},
    )
    life.create(debounce={"key": "other", "seconds": 30, "max_seconds": 90})


def rated(life: Life) -> None:
    """A task whose attempt has used up a rate, and one that waits for it."""
    rate = {"key": "crm", "limit": 1, "per_seconds": 3_600}
    for _ in range(2):
        life.work(life.create(rate=rate))


def targets(life: Life) -> None:
    """Records that are only read: their targets do not exist."""
    life.create(
        delay_seconds=9_000,
        priority="high",
        target={
            "kind": "http",
            "url": "https://example.org/x?y=1",
            "phases": ["prepare", "clean"],
            "queries": ["status"],
        },
        callback_url="https://example.org/ended",
    )
    life.create(delay_seconds=9_000, priority="low", target={"kind": "http", "url": "https://example.org/"})
    request = {"method": "PUT", "headers": {"A": "b"}, "query": {"c": "d"}, "body": {"json": {"e": 1}}}
    life.create(delay_seconds=9_000, target={"kind": "http", "url": "https://example.org/", **request})
    life.create(delay_seconds=9_000, target={"kind": "approval", "timeout_seconds": 600})
    life.create(delay_seconds=9_000, target={"kind": "wait_for_event", "event": "order.paid", "key": "o 17#"})
    condition = "payload.amount > `10`\n&& payload.paid"
    life.create(delay_seconds=9_000, target={"kind": "wait_for_event", "event": "order.paid", "when": condition})


def running(life: Life) -> None:
    """A task with a valid lease, whose worker does not exist when it is read."""
    claimed_by_a_worker(life.create(payload=PAYLOAD), life.stack.clock)
    asked = claimed_by_a_worker(life.create(), life.stack.clock)
    assert life.api.send("POST", f"/v1/tasks/{asked.id}/pause").status == 202
    told = claimed_by_a_worker(life.create(), life.stack.clock)
    body = {"fence": told.fence, "percent": 40, "message": "on the way"}
    assert life.api.send("POST", f"/v1/tasks/{told.id}/progress", body).status == 200


def waiting(life: Life) -> None:
    """A task whose first attempt failed: its error, the attempt, and a timer or a message for the next."""
    life.work(life.create("flaky", retry={"max_attempts": 5, "initial_seconds": 2_000, "max_seconds": 3_000}))


def awaited(life: Life) -> None:
    """A task that was noted at an event, and the signal that has woken it."""
    life.work(life.create(target={"kind": "wait_for_event", "event": "order.paid", "key": "o-17"}))
    signal = {"name": "order.paid", "key": "o-17", "payload": {"amount": 17}}
    assert life.api.send("POST", "/v1/signals", signal).status == 200


def paused(life: Life) -> None:
    """A task that is held before its first attempt, and one that left a checkpoint."""
    held = life.create(delay_seconds=60)
    assert life.api.send("POST", f"/v1/tasks/{held}/pause").status == 200
    task = claimed_by_a_worker(life.create(), life.stack.clock)
    from duetime.domain.tasks.attempt_run import Run  # noqa: PLC0415 - used here alone

    run = Run(task, life.stack.clock.at, life.stack.clock.at + SECOND)
    composed(TaskServices).attempt_reports.outcome_writer.finish(run, Yielded(b'{"at":17}'), frozenset())


def deferred(life: Life) -> None:
    """A task whose target has accepted the work; its deadline has a wake."""
    life.work(life.create("deferring", notify_within_seconds=120))


def ended(life: Life) -> None:
    """Tasks of every end, their results and errors."""
    life.work(life.create(payload=PAYLOAD))
    life.work(life.create("boom", retry={"max_attempts": 1}))
    cancelled = life.create(delay_seconds=60)
    assert life.api.send("POST", f"/v1/tasks/{cancelled}/cancel").status == 200
    undone = life.create("undoing", retry={"max_attempts": 1}, rollback_on_failure=True)
    life.finish(undone)


def phases(life: Life) -> None:
    """A task whose target prepares and cleans up, waiting."""
    life.create("staged", delay_seconds=5)


def outside(life: Life) -> None:
    """A payload that lies beside its record."""
    life.create(payload=BIG, delay_seconds=5)


def moved(life: Life) -> None:
    """A task that waits in another minute than its own: a wake."""
    task = life.create(delay_seconds=600)
    assert life.api.send("PATCH", f"/v1/tasks/{task}", {"delay_seconds": 7_200, "priority": "normal"}).status == 200


def keyed(life: Life) -> None:
    """A task with an idempotency key."""
    life.api.create({"type": "report", "delay_seconds": 60}, {"Idempotency-Key": "frozen-1"})


def locked(life: Life) -> None:
    """A lock that one task holds and another waits for."""
    for _ in range(2):
        task = claimed_by_a_worker(life.create(lock={"key": "db-17"}), life.stack.clock)
        if (
            held := composed(LockServices).manager.take(task, composed(LockServices).manager.claims(task)[0])
        ) is not None:
            composed(WorkerServices).batch_worker.attempt_runner.phases.outcome_writer.postpone(task, held)
    shared = {"key": "gpu", "mode": "shared"}
    task = claimed_by_a_worker(life.create(lock=shared), life.stack.clock)
    assert composed(LockServices).manager.take(task, composed(LockServices).manager.claims(task)[0]) is None


def switched(life: Life) -> None:
    """Switches, and a task that one of them holds back."""
    limits = {"max_concurrent": 3, "rate": {"limit": 9, "per_seconds": 60}}
    assert life.api.send("PUT", "/v1/switches/type/report", limits | {"reason": "for now"}).status == 200
    life.create(delay_seconds=5)


def limited(life: Life) -> None:
    """Quotas of an owner, some of which it uses."""
    limits = {"creates_per_second": 1, "concurrent_attempts": 9, "topology_nodes": 5, "reason": "for now"}
    assert life.api.send("PUT", f"/v1/quotas/{OWNER}", limits).status == 200
    life.create(delay_seconds=60)
    life.create(delay_seconds=60)


def ruled(life: Life) -> None:
    """Intake rules: one that creates and one that cancels."""
    pattern = {"source": ["com.example.orders"], "detail": {"amount": [{"numeric": [">", 100]}]}}
    fields = {"payload": "detail.order"}
    for name, action in (
        ("placed", {"create": {"task": {"type": "report"}, "fields": fields}, "owner": "ann", "description": "why"}),
        ("cancelled", {"cancel": {"filter": {"type": "report"}, "fields": {"name": "detail.name"}, "force": True}}),
    ):
        assert life.api.send("PUT", f"/v1/intake-rules/{name}", {"pattern": pattern, **action}).status == 200


def stopped(life: Life) -> None:
    """The switch that stops all tasks."""
    assert life.api.send("PUT", "/v1/switches/all/all", {"stopped": True}).status == 200


def authorized(life: Life) -> None:
    """API keys: one that was used, and one that was revoked."""
    body = {
        "name": "billing api",
        "roles": ["writer", "worker"],
        "owner": "billing",
        "expires_at": "2027-11-21T00:00:00Z",
    }
    for _ in range(2):
        key = life.api.send("POST", "/v1/keys", body).body
        life.stack.clock.at += SECOND
    decision = life.stack.call("authorizer", {"headers": {"authorization": f"Bearer {key['key']}"}})
    assert decision["isAuthorized"]
    first = life.api.send("GET", "/v1/keys").body["keys"][0]["id"]
    assert life.api.send("DELETE", f"/v1/keys/{first}").status == 200


def defaulted(life: Life) -> None:
    """Defaults of a type, a task that has them, a child of it, a group, and a schedule that overrides one."""
    options = {"priority": "low", "retry": {"max_attempts": 2}, "lock": {"key": "db-17"}}
    assert life.api.send("PUT", "/v1/types/report", options).status == 200
    parent = life.create(delay_seconds=60)
    life.create(delay_seconds=60, parent_task_id=parent)
    life.create(delay_seconds=60, group={"id": "import-17"})
    closing = {"on_complete": {"task": {"type": "report"}, "rule": "all_success"}}
    assert life.api.send("PUT", "/v1/groups/empty", closing).status == 200
    assert life.api.send("PUT", "/v1/groups/other", {}).body["state"] == "completed"
    life.create(after=[parent], trigger_rule="all_done")
    schedule = {"name": "overriding", "cron": "0 * * * *", "task": {"type": "report", "priority": "normal"}}
    assert life.api.send("POST", "/v1/schedules", schedule).status == 201


def broken(life: Life) -> None:
    """The circuit of a host that failed."""
    circuit = Circuit(OWNER, "example.org").opened("Http503", life.stack.clock.at)
    assert composed(CoreServices).stores.circuit_breakers.save(circuit, "a nonce", life.stack.clock.at + HOUR)


def recurring(life: Life) -> None:
    """A calendar, and schedules that have begun."""
    calendar = {"dates": {"2026-12-25": "Christmas Day"}, "weekdays": ["sat"]}
    assert life.api.send("PUT", "/v1/calendars/holidays", calendar).status == 201
    for body in (
        {
            "name": "nightly",
            "cron": "30 1 * * *",
            "timezone": "Europe/London",
            "calendars": ["holidays"],
            "task": {"type": "report"},
        },
        {"name": "often", "rate": "1 minute", "task": {"type": "report", "payload": PAYLOAD}, "overlap": "skip"},
    ):
        answer = life.api.send("POST", "/v1/schedules", body)
        assert answer.status == 201, answer.text
    life.stack.call("trigger", {})


def backfilled(life: Life) -> None:
    """A schedule with a backfill that is on its way, and one that has ended."""
    body = {"name": "hourly", "cron": "0 * * * *", "task": {"type": "report"}}
    assert life.api.send("POST", "/v1/schedules", body).status == 201
    past = {"scheduled_after": "2026-11-19T00:00:00Z", "scheduled_before": "2026-11-19T03:00:00Z"}
    assert life.api.send("POST", BACKFILLS, past | {"only_missing": False}).status == 201
    more = {"scheduled_before": "2026-11-20T00:00:00Z", "per_minute": 1, "overlap": "buffer_all"}
    assert life.api.send("POST", BACKFILLS, past | more).status == 201


def removed(life: Life) -> None:
    """The remains of a deleted schedule, calendar and definition."""
    body = {"name": "gone", "cron": "0 * * * *", "task": {"type": "report", "payload": BIG}}
    assert life.api.send("POST", "/v1/schedules", body).status == 201
    assert life.api.send("PUT", "/v1/calendars/gone", {"weekdays": ["sat"]}).status == 201
    assert life.api.send("PUT", f"{DEFINITIONS}/gone", {"nodes": {"a": {"type": "report"}}}).status == 201
    for path in ("/v1/schedules/gone", "/v1/calendars/gone", f"{DEFINITIONS}/gone"):
        assert life.api.send("DELETE", path).status in {200, 204}


def bulk(life: Life) -> None:
    """A bulk operation that is on its way."""
    for _ in range(2):
        life.create(delay_seconds=7_200)
    body = {"filter": {"type": "report"}, "update": {"priority": "high"}, "per_second": 1}
    assert life.api.send("POST", "/v1/tasks/update", body).status == 202


def defined(life: Life) -> None:
    """A definition of two versions, and a run of the latest."""
    nodes = {"a": {"type": "report", "payload": "<duetime.parameters.day>"}}
    body = {"nodes": nodes, "parameters": {"day": {"type": "string"}}}
    assert life.api.send("PUT", f"{DEFINITIONS}/nightly", body | {"timeout_seconds": 60}).status == 201
    assert life.api.send("PUT", f"{DEFINITIONS}/nightly", body).status == 200
    run = {"parameters": {"day": "2026-11-21"}, "delay_seconds": 9_000}
    assert life.api.send("POST", f"{DEFINITIONS}/nightly/runs", run).status == 201


def graphs(life: Life) -> None:
    """A graph in mid-run: of its nodes one has ended, one waits for its time, and one is blocked."""
    nodes = {
        "top": {"type": "report", "payload": PAYLOAD},
        "left": {"type": "report", "depends_on": ["top"], "expected_seconds": 3, "delay_seconds": 5},
        "bottom": {"type": "report", "depends_on": ["left", "top"], "inputs": ["left"], "trigger_rule": "all_done"},
    }
    made = life.api.send("POST", "/v1/topologies", {"name": "nightly", "nodes": nodes, "timeout_seconds": 9_000})
    assert made.status == 201, made.text
    now = life.stack.clock.at
    task = claimed_by_a_worker(made.body["id"], life.stack.clock)
    composed(WorkerServices).batch_worker.attempt_runner.phases.outcome_writer.finish(
        Run(task, now, now), Deferred(), frozenset()
    )
    life.stack.call("topology", {"state": "plan", "task_id": task.id.text, "fence": 1})
    seen = life.api.send("GET", f"/v1/topologies/{task.id}").body["nodes"]
    life.work(seen["top"]["task_id"])
    composed(TopologyServices).node_finished.store.put_token(TaskId(seen["top"]["task_id"]), "a token", now + HOUR)


def ticked(life: Life) -> None:
    """The trigger's cursors, after two ticks."""
    life.create(delay_seconds=7_200)
    life.stack.call("trigger", {})
    life.stack.clock.at += HOUR
    life.stack.call("trigger", {})


SCENES: tuple[Callable[[Life], None], ...] = (
    scheduled,
    rated,
    targets,
    running,
    waiting,
    awaited,
    paused,
    deferred,
    ended,
    phases,
    outside,
    moved,
    keyed,
    locked,
    switched,
    limited,
    ruled,
    stopped,
    authorized,
    defaulted,
    broken,
    recurring,
    backfilled,
    removed,
    bulk,
    defined,
    graphs,
    ticked,
)
READ = (
    *(
        "/v1/locks/db-17",
        "/v1/switches",
        "/v1/quotas",
        "/v1/intake-rules",
        "/v1/schedules",
        BACKFILLS,
        "/v1/calendars",
        "/v1/bulk-operations",
    ),
    "/v1/keys",
    *(f"{DEFINITIONS}/nightly", f"{DEFINITIONS}/nightly/versions"),
)
"""What is read besides tasks, where it is there."""


def frozen_scene(life: Life, scene: Callable[[Life], None]) -> dict[str, Any]:
    """A scene in its file: the time, every item, the API's responses about them."""
    scene(life)
    ids = [item["s"]["S"] for item in life.items() if "z" in item]
    paths = [f"/v1/{kind}/{task_id}" for kind in ("tasks", "topologies") for task_id in ids]
    answers = {path: answer.body for path in (*paths, *READ) if (answer := life.api.send("GET", path)).status == 200}
    return {"scene": scene.__doc__, "clock": life.stack.clock.at, "items": life.items(), "answers": answers}


def main() -> None:
    """Freeze every scene that is not frozen yet."""
    folder = FROZEN / f"v{SCHEMA_VERSION}"
    folder.mkdir(parents=True, exist_ok=True)
    for scene in SCENES:
        path = folder / f"{scene.__name__}.json"
        if path.exists():
            continue
        text = json.dumps(frozen_scene(Life.faked(), scene), indent=1, ensure_ascii=False)
        composition.use(None)
        path.write_text(f"{text}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
