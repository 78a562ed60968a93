"""Handlers get a run's scheduled time, the neighboring times, its cause, topology and tags."""

from __future__ import annotations

from typing import Any

import pytest

from duetime.domain.tasks.task import Cause
from duetime.domain.times import to_iso
from duetime.handlers import RunTopology
from tests.scenarios.graphs import Graphs
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND
from tests.scenarios.schedules import NAME, Schedules
from tests.scenarios.test_pull_workers import Pulled

TEMPLATE = {
    "type": PLAIN,
    "payload": {"at": "<duetime.scheduled-at>", "why": "<duetime.cause>"},
    "tags": {"team": "dba"},
}


class Told(Schedules):
    """An account that records what handlers get.

    Attributes:
        told: the context and the payload for each run, in order.
    """

    def __init__(self) -> None:
        super().__init__()
        self.told: list[tuple[Any, Any]] = []

    def act(self, phase: str, context: Any, payload: Any) -> Any:  # noqa: ANN401 - a handler gets it
        """Record what a handler gets."""
        self.told.append((context, payload))
        return super().act(phase, context, payload)


def test_a_run_knows_its_scheduled_previous_and_next_times() -> None:
    """Regular, late and manual runs know their scheduled time, the previous and next times, and the cause."""
    with Told() as schedules:
        schedules.make(cron="*/10 * * * *", task=TEMPLATE)
        schedules.run(11 * MINUTE)
        schedules.control("run")
        schedules.run(SECOND)
        schedules.ticking = False
        schedules.run(21 * MINUTE)
        schedules.ticking = True
        schedules.run(3 * MINUTE)
        whys = [context.schedule.cause for context, _ in schedules.told]
        assert whys == ["schedule", "manual", "catch_up"]
        for context, payload in schedules.told:
            run = context.schedule
            assert (run.name, context.tags) == (NAME, {"team": "dba"})
            assert payload == {"at": _iso(run.scheduled_at), "why": run.cause}
            around = [run.next_at - run.scheduled_at, run.scheduled_at - run.previous_at]
            assert {int(each.total_seconds()) // 60 for each in around} == {10} or run.cause == "manual"
            assert run.previous_at < run.scheduled_at < run.next_at
        late = schedules.told[-1][0]
        assert late.lateness_ms >= 60 * SECOND
        assert late.due_at == late.schedule.scheduled_at


def test_each_run_of_a_backfill_knows_its_past_scheduled_time() -> None:
    """Each run of a backfill has its past scheduled time in its payload, and the API shows the next time."""
    with Told() as schedules:
        schedules.make(cron="0 * * * *", task=TEMPLATE, overlap="allow_all")
        start = schedules.now // HOUR * HOUR - 3 * HOUR
        asked = {"scheduled_after": to_iso(start), "scheduled_before": to_iso(start + 2 * HOUR)}
        assert schedules.control("backfills", asked).status in {200, 201, 202}
        schedules.run(5 * MINUTE)
        filled = sorted(payload["at"] for _, payload in schedules.told if payload["why"] == Cause.BACKFILL)
        assert filled == [to_iso(start + hours * HOUR) for hours in range(len(filled))]
        assert len(filled) >= 2
        task_id = schedules.told[0][0].task_id
        said = schedules.ask("GET", f"/v1/tasks/{task_id}").body
        assert said["schedule"]["next_at"] == to_iso(start + HOUR)
        assert said["payload"] == TEMPLATE["payload"]


def test_jitter_does_not_change_a_runs_scheduled_time() -> None:
    """A run that jitter delays keeps its scheduled time."""
    with Told() as schedules:
        schedules.make(cron="*/10 * * * *", jitter_seconds=120, task=TEMPLATE)
        schedules.run(25 * MINUTE)
        assert len(schedules.told) >= 2
        for context, payload in schedules.told:
            assert payload["at"].endswith("0:00.000Z")
            assert context.due_at >= context.schedule.scheduled_at
        assert any(context.due_at > context.schedule.scheduled_at for context, _ in schedules.told)


def test_a_node_of_a_scheduled_topology_knows_the_schedule() -> None:
    """In a scheduled topology, a node's context and payload name the topology, the node and the scheduled time."""
    node = {"type": PLAIN, "payload": ["<duetime.node>", "<duetime.scheduled-at>", "<duetime.topology>"]}
    with Told() as schedules:
        graph = {"nodes": {"a": node, "b": {**node, "depends_on": ["a"]}}}
        schedules.make(cron="*/10 * * * *", task={"type": "topology", "target": {"kind": "topology"}, "payload": graph})
        schedules.run(12 * MINUTE)
        assert [payload[0] for _, payload in schedules.told] == ["a", "b"]
        for context, payload in schedules.told:
            assert context.topology == RunTopology(payload[2], 1, payload[0])
            assert context.schedule.name == NAME
            assert payload[1] == _iso(context.schedule.scheduled_at)
            said = schedules.ask("GET", f"/v1/tasks/{context.task_id}").body
            assert (said["schedule"]["name"], said["topology"]["node"]) == (NAME, payload[0])


def test_a_node_of_a_topology_without_a_schedule_has_its_due_time() -> None:
    """If a topology has no schedule, a node's scheduled time is its due time."""
    with Graphs() as graphs:
        graphs.submit({"a": {"type": PLAIN}})
        graphs.run(MINUTE)
        node = graphs.node("a")
        assert node.schedule_run is None
        assert node.scheduled_at == node.due_at


def test_the_payload_in_a_lease_has_its_placeholders_filled_in() -> None:
    """The payload in a lease has its placeholders filled in, but reading the task returns the original."""
    with Pulled() as tasks:
        task_id = tasks.create_pulled(payload={"id": "<duetime.task-id>", "n": "<duetime.attempt>"}, tags={"a": "b"})
        lease = tasks.lease_one()
        assert lease["task"]["payload"] == {"id": task_id, "n": "1"}
        assert lease["task"]["tags"] == {"a": "b"}
        assert tasks.tell(lease, "fail", {"error": {"type": "Boom", "message": "no"}}).status == 200
        assert tasks.lease_one()["task"]["payload"] == {"id": task_id, "n": "2"}
        assert tasks.ask("GET", f"/v1/tasks/{task_id}").body["payload"]["n"] == "<duetime.attempt>"


@pytest.mark.parametrize("phase", ["prepare", "run", "clean"])
def test_every_phase_of_an_attempt_gets_the_same_payload(phase: str) -> None:
    """All phases of an attempt get the same payload."""
    with Told() as tasks:
        tasks.create(kind="simulation-phased", payload="<duetime.task-id>/<duetime.attempt>")
        tasks.run(MINUTE)
        (payload,) = {payload for context, payload in tasks.told}
        assert payload == f"{tasks.told[0][0].task_id}/1"
        assert phase in tasks.phases()


def _iso(moment: Any) -> str:  # noqa: ANN401 - a datetime
    return str(moment.isoformat(timespec="milliseconds").replace("+00:00", "Z"))
