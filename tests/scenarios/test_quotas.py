"""Quotas limit an owner's requests and tasks, across any number of processes."""

from __future__ import annotations

import json
from collections import Counter
from itertools import accumulate
from typing import TYPE_CHECKING, Any

import pytest

from duetime.adapters.dynamodb import schema
from duetime.domain.operating_parameters import QUOTA_WINDOW
from duetime.domain.quotas import Quota
from duetime.domain.times import to_iso
from duetime.environment_variables import Variable
from duetime_testing.simulation.table_stream import SimulatedTableStream
from tests.parts import others_slow
from tests.scenarios.scenario import HOUR, PLAIN, SECOND
from tests.scenarios.tasks import Tasks
from tests.simulation.account import PULLED

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.domain.times import Millis
    from tests.simulation.users import Reply

HOSTILE = {"X-Duetime-Owner": "hostile"}
BOSS = {"X-Duetime-Owner": "boss"}
FAR: dict[str, Any] = {"type": PLAIN, "delay_seconds": 36_000}
LEASES = {"types": [PULLED], "lease_seconds": 30, "worker": "X", "max_tasks": 5}


class Limited(Tasks):
    """An account in which an operator limits the owner `hostile`; other owners have no limits."""

    def __init__(self, **quotas: int) -> None:
        super().__init__()
        # Tasks can be late because of quotas, without a fault.
        self.faulty = True
        self.environ[Variable.QUOTAS] = "{}"
        self.environ[Variable.OPERATORS] = "boss"
        self.requests: list[tuple[Millis, list[Reply]]] = []
        if quotas:
            assert self.ask("PUT", "/v1/quotas/hostile", quotas, headers=BOSS).status == 200

    def as_hostile(self, method: str, path: str, body: object = None, **more: Any) -> Reply:  # noqa: ANN401 - see `ask`
        """Send a request as the hostile owner."""
        return self.ask(method, path, body, headers=HOSTILE, **more)

    def flood(self, waves: int, size: int, method: str = "POST", path: str = "/v1/tasks", body: object = FAR) -> Millis:
        """Send waves of concurrent requests as the hostile owner, four per second; return when the first wave began."""
        began = self.now
        for _ in range(waves):
            self.requests += [(self.now, self.send(method, path, body, headers=HOSTILE)) for _ in range(size)]
            self.run(SECOND // 4)
        return began

    def answers(self, since: Millis = 0) -> Counter[int]:
        """How many of the hostile owner's requests since a given time got each status."""
        return Counter(replies[0].status for at, replies in self.requests if at >= since and replies)

    def used(self, quota: Quota) -> float:
        """The hostile owner's usage."""
        return float(self.as_hostile("GET", "/v1/quotas/hostile").body["used"][quota.value])

    @property
    def processes(self) -> int:
        """Number of API processes."""
        return sum(machine.function == "api" for machine in self.machines)

    def create_due(self, count: int, due: Millis) -> set[str]:
        """Create tasks for the hostile owner that are all due at `due`; return their ids."""
        task = {"type": PLAIN, "due_at": to_iso(due), "timeout_seconds": 60}
        ids = set()
        for first in range(0, count, 100):
            batch = {"tasks": [task] * min(100, count - first)}
            results = self.as_hostile("POST", "/v1/tasks/batch", batch).body["results"]
            ids |= {result["task"]["id"] for result in results}
        return ids

    def lateness(self, due: Millis) -> list[Millis]:
        """Create fifty tasks of another owner that are due 200 ms apart; return each task's lateness."""
        self.run(due - self.now - 5 * SECOND)
        mine = {self.create(due_at=to_iso(at)): at for at in range(due, due + 10 * SECOND, SECOND // 5)}
        self.run(due + 15 * SECOND - self.now)
        starts = {effect.task_id: effect.at for effect in self.effects}
        return sorted(starts[task_id] - at for task_id, at in mine.items())


def working(tasks: Limited, duration: Millis) -> Callable[[str, Any], str]:
    """A target that takes `duration`."""

    def work(_phase: str, _context: object) -> str:
        tasks.take(duration)
        return "done"

    return work


@pytest.mark.parametrize("limit", others_slow([10, 40]))
def test_creations_over_many_processes_are_limited_within_a_tenth(limit: int) -> None:
    """With thirty concurrent processes, the number of creations per window is within 10% of the quota."""
    with Limited(creates_per_second=limit) as tasks:
        began = tasks.flood(waves=60, size=30)
        assert tasks.processes >= 30
        assert set(tasks.answers()) == {201, 429}
        assert tasks.answers()[201] <= 1.1 * (5 + 15) * limit
        assert tasks.answers(began + 5 * SECOND)[201] == pytest.approx(10 * limit, rel=0.1)


def test_a_429_names_the_quota_and_when_to_repeat_the_request() -> None:
    """A 429 names the quota, and a repeat after `Retry-After` succeeds."""
    with Limited(creates_per_second=2) as tasks:
        tasks.flood(waves=1, size=12)
        tasks.run(SECOND)
        refused = tasks.as_hostile("POST", "/v1/tasks", FAR)
        assert (refused.status, refused.body["code"]) == (429, "quota_exceeded")
        assert refused.body["quota"] == "creates_per_second"
        wait = int(refused.headers["Retry-After"])
        assert 1 <= wait <= 10
        tasks.run(wait * SECOND)
        assert tasks.as_hostile("POST", "/v1/tasks", FAR).status == 201


def test_other_owners_and_other_requests_are_not_limited() -> None:
    """An owner beyond its creation quota can still read, and other owners can create."""
    with Limited(creates_per_second=1) as tasks:
        tasks.flood(waves=2, size=10)
        assert tasks.answers()[429]
        assert tasks.as_hostile("GET", "/v1/tasks").status == 200
        assert tasks.ask("POST", "/v1/tasks", FAR).status == 201


def test_reads_are_limited() -> None:
    """Reads have their own quota."""
    with Limited(reads_per_second=10) as tasks:
        began = tasks.flood(waves=40, size=10, method="GET", path="/v1/locks", body=None)
        assert tasks.answers(began + 5 * SECOND)[200] == pytest.approx(50, rel=0.1)
        assert tasks.as_hostile("POST", "/v1/tasks", FAR).status == 201


def test_the_bytes_of_uploads_are_limited() -> None:
    """Uploads count as payloads, so an owner's uploads beyond the quota get 429."""
    with Limited(payload_bytes_per_second=10_000) as tasks:
        large = {"size": 5_000_000}
        assert tasks.as_hostile("POST", "/v1/uploads", large).status == 201
        tasks.run(SECOND)
        refused = tasks.as_hostile("POST", "/v1/uploads", large)
        assert (refused.status, refused.body["quota"]) == (429, Quota.PAYLOAD_BYTES)
        assert tasks.ask("POST", "/v1/uploads", large, headers=BOSS).status == 201


def test_the_bytes_of_payloads_are_limited() -> None:
    """The payload quota counts bytes, so a few large requests use up as much as many small requests."""
    with Limited(payload_bytes_per_second=10_000) as tasks:
        began = tasks.flood(waves=40, size=2, body={**FAR, "payload": "x" * 4_900})
        assert tasks.answers(began + 5 * SECOND)[201] == pytest.approx(10, abs=1)


def test_open_tasks_are_limited_within_a_tenth() -> None:
    """If an owner has reached the limit on open tasks, no task is created until other tasks have ended."""
    with Limited(open_tasks=400) as tasks:
        SimulatedTableStream(tasks)
        for _ in range(4):
            tasks.flood(waves=60, size=3)
            assert tasks.answers()[201] <= 440
            tasks.run(20 * SECOND)
        assert tasks.answers()[201] >= 360
        refused = tasks.as_hostile("POST", "/v1/tasks", FAR)
        assert (refused.status, refused.body["quota"]) == (429, "open_tasks")
        assert tasks.used(Quota.OPEN_TASKS) == tasks.answers()[201]
        for task in list(tasks.watching.tasks())[:100]:
            tasks.as_hostile("POST", f"/v1/tasks/{task.id}/cancel")
        tasks.run(20 * SECOND)
        assert tasks.used(Quota.OPEN_TASKS) == tasks.answers()[201] - 100
        assert tasks.as_hostile("POST", "/v1/tasks", FAR).status == 201


def test_concurrent_attempts_are_limited_without_losing_a_task() -> None:
    """With a limit of ten attempts, a hundred due tasks run ten at a time, and waiting uses up no attempt."""
    with Limited(concurrent_attempts=10) as tasks:
        tasks.target = working(tasks, 2 * SECOND)
        due = tasks.now + HOUR
        ids = tasks.create_due(100, due)
        tasks.run(due + 5 * SECOND - tasks.now)
        waiting = next(task for task in tasks.watching.tasks() if task.state == "waiting")
        assert waiting.waiting_for == "quota concurrent_attempts: the owner runs 10 attempts already"
        assert waiting.attempt == 0
        tasks.run(5 * 60 * SECOND)
        assert tasks.tally() == {"succeeded": 100}
        starts = [effect.at for effect in tasks.effects if effect.task_id in ids]
        changes = sorted([(at, 1) for at in starts] + [(at + 2 * SECOND, -1) for at in starts])
        assert max(accumulate(change for _, change in changes)) == 10


@pytest.mark.slow
def test_a_hostile_owner_does_not_delay_another() -> None:
    """Floods of a hostile owner's tasks and nodes at most double another owner's largest lateness."""
    late = []
    for is_hostile in (False, True):
        with Limited(concurrent_attempts=20, topology_nodes=100, schedules=5) as tasks:
            tasks.target = working(tasks, 2 * SECOND)
            due = tasks.now + HOUR
            if is_hostile:
                tasks.create_due(600, due)
                nodes = {str(number): {"type": PLAIN, "timeout_seconds": 60} for number in range(100)}
                for _ in range(3):
                    graph = {"nodes": nodes, "due_at": to_iso(due)}
                    assert tasks.as_hostile("POST", "/v1/topologies", graph).status == 201
            late.append(tasks.lateness(due))
    alone, beside = (each[-1] for each in late)
    assert beside <= 2 * max(alone, 20)


def test_waiting_requests_are_limited() -> None:
    """Reads that wait beyond the limit get 429, but a create request beyond the limit still creates its task."""
    with Limited(long_polls=2) as tasks:
        task_id = tasks.as_hostile("POST", "/v1/tasks", FAR).body["id"]
        read = [tasks.send("GET", f"/v1/tasks/{task_id}", headers=HOSTILE, query="wait_seconds=20") for _ in range(6)]
        tasks.run(3 * SECOND)
        assert [replies[0].body["quota"] for replies in read if replies] == ["long_polls"] * 4
        created = tasks.as_hostile("POST", "/v1/tasks", FAR, query="wait_seconds=20")
        assert (created.status, created.body["state"]) == (202, "scheduled")
        tasks.run(20 * SECOND)
        assert sorted(replies[0].status for replies in read) == [200, 200, 429, 429, 429, 429]


def test_concurrent_leases_are_limited() -> None:
    """A worker gets as many leases as its owner's quota allows, and another lease after it completes a task."""
    with Limited(pull_leases=3) as tasks:
        for _ in range(6):
            tasks.create(kind=PULLED)
        tasks.run(2 * SECOND)
        leased = tasks.as_hostile("POST", "/v1/leases", LEASES).body["leases"]
        assert len(leased) == 3
        refused = tasks.as_hostile("POST", "/v1/leases", LEASES)
        assert (refused.status, refused.body["quota"]) == (429, "pull_leases")
        tasks.as_hostile("POST", f"/v1/leases/{leased[0]['id']}/complete", {})
        assert len(tasks.as_hostile("POST", "/v1/leases", LEASES).body["leases"]) == 1


def test_the_nodes_of_running_topologies_are_limited() -> None:
    """A topology waits if running topologies use up the nodes quota, and a topology above the quota is refused."""
    with Limited(topology_nodes=5) as tasks:
        nodes = {str(number): {"type": PLAIN} for number in range(3)}
        big = {"nodes": {str(number): {"type": PLAIN} for number in range(6)}}
        refused = tasks.as_hostile("POST", "/v1/topologies", big)
        assert (refused.status, refused.body["quota"]) == (429, "topology_nodes")
        made = [
            tasks.as_hostile("POST", "/v1/topologies", {"nodes": nodes, "delay_seconds": 10}).body["id"] for _ in "ab"
        ]
        tasks.target = working(tasks, 20 * SECOND)
        tasks.run(25 * SECOND)
        assert sorted(str(tasks.state(each)) for each in made) == ["running", "waiting"]
        tasks.run(5 * 60 * SECOND)
        assert {str(tasks.state(each)) for each in made} == {"succeeded"}


def test_a_topology_above_the_nodes_quota_is_refused_by_each_request() -> None:
    """A topology above the nodes quota is refused as a task, in a batch, as a run of a definition and after a group."""
    with Limited(topology_nodes=5) as tasks:
        small, big = ({"nodes": {str(number): {"type": PLAIN} for number in range(count)}} for count in (3, 6))
        topology = {"type": "topology", "target": {"kind": "topology"}}
        named = {"type": "topology", "target": {"kind": "topology", "definition": {"name": "big"}}}
        assert tasks.as_hostile("PUT", "/v1/topologies/definitions/big", big).status == 201
        assert tasks.as_hostile("POST", "/v1/tasks", {**FAR, "group": {"id": "g"}}).status == 201
        for request, body in (
            ("POST /v1/tasks", {**topology, "payload": big}),
            ("POST /v1/tasks", named),
            ("POST /v1/tasks/batch", {"tasks": [FAR, {**topology, "payload": big}]}),
            ("POST /v1/topologies/definitions/big/runs", {}),
            ("PUT /v1/groups/g", {"on_complete": {"task": {**topology, "payload": big}}}),
        ):
            method, path = request.split()
            refused = tasks.as_hostile(method, path, body)
            assert (refused.status, refused.body.get("quota")) == (429, "topology_nodes"), request
        several = {"tasks": [{**topology, "payload": small, "delay_seconds": 3_600}] * 2}
        assert tasks.as_hostile("POST", "/v1/tasks/batch", several).status == 200
        missing = {**named, "target": {"kind": "topology", "definition": {"name": "missing"}}}
        assert tasks.as_hostile("POST", "/v1/tasks", missing).status == 422


def test_the_manual_runs_of_schedules_are_limited() -> None:
    """Manual runs of a schedule count as creations, so runs beyond the quota get 429."""
    with Limited(creates_per_second=1) as tasks:
        yearly = {"name": "yearly", "cron": "0 0 1 1 *", "task": {"type": PLAIN}}
        assert tasks.as_hostile("POST", "/v1/schedules", yearly).status == 201
        answers = [tasks.as_hostile("POST", "/v1/schedules/yearly/run") for _ in range(40)]
        assert Counter(answer.status for answer in answers)[201] < 15
        assert (answers[-1].status, answers[-1].body["quota"]) == (429, "creates_per_second")


def test_nobody_is_limited_while_usage_cannot_be_counted() -> None:
    """If usage cannot be counted, no task is refused or delayed."""
    with Limited(creates_per_second=1, concurrent_attempts=1) as tasks:
        tasks.before_call = lambda call: (
            call.refuse()
            if call.operation in {"query", "update_item"} and "q#" in json.dumps(call.request, default=str)
            else None
        )
        tasks.flood(waves=2, size=10, body={"type": PLAIN, "timeout_seconds": 60})
        tasks.run(20 * SECOND)
        assert tasks.answers() == {201: 20}
        assert tasks.tally() == {"succeeded": 20}


def test_usage_items_are_kept_for_as_long_as_they_count() -> None:
    """A usage item expires only when it no longer counts toward a quota."""
    with Limited(creates_per_second=10, concurrent_attempts=5, topology_nodes=5) as tasks:
        tasks.target = working(tasks, 20 * SECOND)
        tasks.as_hostile("POST", "/v1/topologies", {"nodes": {"a": {"type": PLAIN, "timeout_seconds": 60}}})
        tasks.run(10 * SECOND)
        items = {item[schema.SORT_KEY]["S"].partition("#")[0]: item for item in tasks.items(f"{schema.QUOTA_PREFIX}h")}
        assert set(items) == {"w", "concurrent_attempts", "topology_nodes"}
        left = {name: int(item[schema.TTL]["N"]) * SECOND - tasks.now for name, item in items.items()}
        assert left["w"] > 3 * QUOTA_WINDOW + HOUR // 2
        assert left["concurrent_attempts"] > int(items["concurrent_attempts"]["u"]["N"]) - tasks.now > 10 * SECOND
        assert left["topology_nodes"] > 366 * 24 * HOUR


def test_a_preview_names_a_quota_that_is_used_up() -> None:
    """A preview says that the task would be created but wait for the attempts quota."""
    with Limited(concurrent_attempts=1) as account:
        wanted = {"type": PLAIN}
        assert account.as_hostile("POST", "/v1/tasks/preview", wanted).body["reasons"] == []
        account.last(30)
        account.as_hostile("POST", "/v1/tasks", {"type": PLAIN, "timeout_seconds": 60})
        account.run(3 * SECOND)
        found = account.as_hostile("POST", "/v1/tasks/preview", wanted).body
        assert ([each["name"] for each in found["reasons"]], found["expected_start_at"]) == (["quota"], None)
        assert "concurrent_attempts is used up (1 of 1): due tasks wait." in found["text"]


def test_a_preview_compares_rates_over_the_window_in_which_they_are_counted() -> None:
    """A preview does not say that a creation is refused if five seconds of the quota have room for the payload."""
    with Limited(payload_bytes_per_second=1_000) as account:
        wanted = {"type": PLAIN, "payload": "x" * 4_900}
        assert account.as_hostile("POST", "/v1/tasks/preview", wanted).body["reasons"] == []
        assert account.as_hostile("POST", "/v1/tasks", wanted).status == 201
        while account.as_hostile("POST", "/v1/tasks", wanted).status == 201:
            pass
        found = account.as_hostile("POST", "/v1/tasks/preview", wanted).body
        assert [each["name"] for each in found["reasons"]] == ["quota"]


def test_a_task_that_waits_for_a_quota_is_not_said_to_be_free() -> None:
    """The explanation of a task that waits for its owner's quota names the quota, whose use it does not read."""
    with Limited(concurrent_attempts=1) as account:
        account.last(120)
        account.as_hostile("POST", "/v1/tasks", {"type": PLAIN, "timeout_seconds": 200})
        account.run(3 * SECOND)
        waits = account.as_hostile("POST", "/v1/tasks", {"type": PLAIN}).body["id"]
        account.run(5 * SECOND)
        gate = account.as_hostile("GET", f"/v1/tasks/{waits}/explain").body["gates"][-1]
        assert gate["name"] == "concurrency_limit"
        assert gate["text"].startswith(
            "It was postponed: quota concurrent_attempts: the owner runs 1 attempts already."
        )
