"""Each test covers one reason for which a task waits, or a part of its time in the explanation."""

from __future__ import annotations

import sys
from collections import Counter
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from duetime.adapters.dynamodb.task_items import item_of, key_of
from duetime.domain.explanations.gate import GateName
from duetime.domain.operating_parameters import EARLY_SCAN_AGES
from duetime.domain.times import to_iso
from duetime.environment_variables import Variable
from duetime.handlers import Accepted
from tests.scenarios.graphs import Graphs
from tests.scenarios.scenario import HOUR, MINUTE, PHASED, PLAIN, SECOND, Scenario
from tests.scenarios.schedules import PATH as SCHEDULE
from tests.scenarios.schedules import Schedules
from tests.scenarios.tasks import ONCE, Tasks
from tests.simulation.account import PULLED
from tests.simulation.endpoints import SINK, URL

if TYPE_CHECKING:
    from duetime_testing.simulation.faults import Call

PACKAGE = "absent_handlers"
LOCK = {"key": "db-17"}
CALL = {"kind": "http", "url": URL}
PATIENT = {"max_attempts": 5, "initial_seconds": 600}
STOP = "/v1/switches/type/" + PLAIN


class Explained(Tasks):
    """An account whose tasks' explanations are tested; the tasks may be late."""

    def __init__(self) -> None:
        super().__init__()
        self.faulty = True


def why(scenario: Scenario, task_id: str) -> dict[str, Any]:
    """The explanation of a task, whose parts must add up to the total time without a gap."""
    reply = scenario.ask("GET", f"/v1/tasks/{task_id}/explain")
    assert reply.status == 200, reply.body
    body: dict[str, Any] = reply.body
    been = [gate for gate in body["gates"] if gate["duration_ms"] is not None]
    assert sum(gate["duration_ms"] for gate in been) == body["total_ms"]
    assert been[0]["since"] == body["since"]
    for before, after in pairwise(been):
        assert before["until"] == after["since"]
    assert millis(body["until"]) - millis(body["since"]) == body["total_ms"]
    assert body["overdue_ms"] == max(0, millis(body["until"]) - millis(body["due_at"]))
    return body


def millis(text: str) -> int:
    """A response's time in milliseconds."""
    return round(datetime.fromisoformat(text).timestamp() * SECOND)


def waiting(body: dict[str, Any]) -> dict[str, Any]:
    """The only gate at which a task currently waits."""
    found = [gate for gate in body["gates"] if gate["state"] == "waiting"]
    assert len(found) == 1, body
    return dict(found[0])


def ahead(body: dict[str, Any]) -> list[str]:
    """The gates that would also keep a task from starting."""
    return [gate["name"] for gate in body["gates"] if gate["state"] == "ahead"]


def spent(body: dict[str, Any]) -> dict[str, int]:
    """The time that a task spent at each gate, in milliseconds."""
    found: Counter[str] = Counter()
    for gate in body["gates"]:
        found[gate["name"]] += gate["duration_ms"] or 0
    return dict(found)


def test_the_explanation_of_a_task_not_yet_due_has_its_due_time() -> None:
    """The explanation of a task that is not due yet shows the due time, and the time until then."""
    with Explained() as tasks:
        task_id = tasks.create(2 * HOUR)
        gate = waiting(body := why(tasks, task_id))
        assert (gate["name"], gate["until"], ahead(body)) == ("due", body["due_at"], [])
        assert "in 2 h" in gate["text"]


def test_the_explanation_of_a_future_task_names_stops_and_held_locks() -> None:
    """The explanation of a future task names a stopped type and a held lock, with their reasons."""
    with Explained() as tasks:
        tasks.last(600)
        holder = tasks.create(lock=LOCK, timeout_seconds=800)
        tasks.run(2 * SECOND)
        tasks.ask("PUT", STOP, {"stopped": True, "reason": "an incident"})
        body = why(tasks, tasks.create(24 * HOUR, lock=LOCK))
        assert waiting(body)["name"] == "due"
        assert ahead(body) == ["switch", "lock"]
        switch, lock = (gate["waits_for"] for gate in body["gates"] if gate["state"] == "ahead")
        assert (switch["switch"]["reason"], switch["switch"]["updated_by"]) == ("an incident", "local")
        assert [each["task_id"] for each in lock["lock"]["holders"]] == [holder]
        assert "an incident" in body["text"]
        assert holder in body["text"]


def test_a_due_task_that_the_trigger_has_not_read_waits_for_the_trigger() -> None:
    """If the trigger does not run, the explanation of a due task names the trigger as the gate."""
    with Explained() as tasks:
        tasks.ticking = False
        task_id = tasks.create(HOUR)
        tasks.run(HOUR + 90 * SECOND)
        gate = waiting(why(tasks, task_id))
        assert gate["name"] == "trigger"
        assert gate["duration_ms"] > 80 * SECOND
        assert gate["waits_for"]["queue"]["name"] == "normal"


@pytest.mark.parametrize("delay", [0, 10 * MINUTE], ids=["sent by the API", "sent by the trigger"])
def test_a_task_that_no_worker_claims_waits_on_its_queue(delay: int) -> None:
    """The explanation of an unclaimed task names its queue, its fair key, and when the next message is sent."""
    with Explained() as tasks:
        tasks.receiving = False
        task_id = tasks.create(delay, priority="high")
        keyed = tasks.create(delay, priority="high", fair_key="customer-17")
        tasks.run(delay + 40 * SECOND)
        assert "While its fair key customer-17 has many tasks at work" in waiting(why(tasks, keyed))["text"]
        gate = waiting(body := why(tasks, task_id))
        assert "fair key" not in gate["text"]
        assert gate["name"] == "queue"
        assert (gate["waits_for"]["queue"]["name"], gate["waits_for"]["queue"]["is_pulled"]) == ("high", False)
        assert gate["duration_ms"] == pytest.approx(40 * SECOND, abs=2 * SECOND)
        assert millis(gate["until"]) > millis(body["as_of"])


def test_the_explanation_separates_lateness_of_the_trigger_and_the_queue() -> None:
    """In the explanation, a late start has separate parts before the message was sent and before it was received."""
    with Explained() as tasks:
        tasks.ticking = False
        task_id = tasks.create(HOUR)
        tasks.run(HOUR + 5 * MINUTE)
        tasks.receiving, tasks.ticking = False, True
        assert tasks.run_until(tasks.messages, within=5 * MINUTE)
        tasks.run(40 * SECOND)
        tasks.receive_again()
        assert tasks.run_until(lambda: tasks.record(task_id).finished_at)
        body = why(tasks, task_id)
        found = spent(body)
        assert 4 * MINUTE < found["trigger"] < 8 * MINUTE
        assert found["queue"] == pytest.approx(40 * SECOND, abs=2 * SECOND)
        assert found.get("worker", 0) < SECOND
        assert [gate["name"] for gate in body["gates"]][:3] == ["due", "trigger", "queue"]


@pytest.mark.parametrize("delay", [0, 10 * MINUTE], ids=["sent by the API", "sent by the trigger"])
def test_the_explanation_attributes_a_late_start_to_a_lost_message(delay: int) -> None:
    """In the explanation, the time until the next message is attributed to a lost message."""
    with Explained() as tasks:
        tasks.receiving = False
        task_id = tasks.create(delay)
        assert tasks.run_until(tasks.messages, within=delay + MINUTE)
        for queue in tasks.sqs.queues.values():
            queue.messages.clear()
        tasks.receive_again()
        assert tasks.run_until(lambda: tasks.record(task_id).finished_at, within=delay + 10 * MINUTE)
        (gate,) = [each for each in why(tasks, task_id)["gates"] if each["name"] == "trigger"]
        assert gate["duration_ms"] > EARLY_SCAN_AGES[0]
        assert "had not been sent" not in gate["text"]
        assert "lost" in gate["text"]


def test_the_explanation_separates_the_time_before_a_late_tasks_creation() -> None:
    """In the explanation, the time before a late task's creation is a separate part."""
    with Explained() as tasks:
        task_id = tasks.ask("POST", "/v1/tasks", {"type": PLAIN, "due_at": to_iso(tasks.now - HOUR)}).body["id"]
        assert tasks.run_until(lambda: tasks.record(task_id).finished_at)
        body = why(tasks, task_id)
        assert body["gates"][0]["name"] == "creation"
        assert spent(body)["creation"] == pytest.approx(HOUR, abs=SECOND)
        assert "1 h creation" in body["text"]


def test_the_explanation_shows_an_unknown_reason_as_stored() -> None:
    """If a newer version has stored an unknown reason, the explanation shows the stored reason."""
    with Explained() as tasks:
        tasks.ask("PUT", STOP, {"stopped": True})
        task_id = tasks.create()
        tasks.run(5 * SECOND)
        record = tasks.record(task_id)
        key = key_of(record.id)
        stored = tasks.table.partitions[key["p"]["S"]][task_id]
        changed = item_of(replace(record, waiting_for="the tide is out", waits=()))
        stored |= {name: value for name, value in changed.items() if stored.get(name) != value and name != "e"}
        gate = waiting(why(tasks, task_id))
        assert (gate["name"], gate["waits_for"]) == ("other", None)
        assert gate["text"].startswith("It was postponed: the tide is out. It is checked again")


def test_the_explanation_of_a_waiting_task_names_its_rate() -> None:
    """The explanation of a task that waits for a rate names the rate and its limit."""
    with Explained() as tasks:
        rate = {"key": "crm", "limit": 1, "per_seconds": 60}
        tasks.create(rate=rate)
        tasks.run(SECOND)
        task_id = tasks.create(rate=rate)
        tasks.run(5 * SECOND)
        gate = waiting(why(tasks, task_id))
        assert gate["name"] == "rate"
        assert "rate crm (1 per 60 s)" in gate["text"]


def test_the_explanation_of_a_waiting_approval_has_its_deadline() -> None:
    """The explanation of a task that waits for an approval shows the approval's deadline."""
    with Explained() as tasks:
        task_id = tasks.create(target={"kind": "approval", "timeout_seconds": 600})
        tasks.run(5 * SECOND)
        gate = waiting(why(tasks, task_id))
        assert gate["name"] == "approval"
        assert 590 * SECOND < millis(gate["until"]) - tasks.now < 600 * SECOND


def test_the_explanation_of_a_signal_wait_has_the_condition() -> None:
    """The explanation shows the task's condition, so that a sender sees why a signal did not end the task."""
    with Explained() as tasks:
        target = {"kind": "wait_for_event", "event": "order.paid", "when": "payload.amount > `10`"}
        task_id = tasks.create(target=target)
        tasks.run(5 * SECOND)
        wait = "It waits for the event order.paid with a signal for which payload.amount > `10` until "
        assert waiting(why(tasks, task_id))["text"].startswith(wait)


def test_the_explanation_of_an_event_wait_has_name_key_and_deadline() -> None:
    """The explanation of a task that waits for an event shows the event's name, key and deadline."""
    with Explained() as tasks:
        target = {"kind": "wait_for_event", "event": "order.paid", "key": "o-17", "timeout_seconds": 600}
        task_id = tasks.create(target=target)
        tasks.run(5 * SECOND)
        gate = waiting(why(tasks, task_id))
        assert gate["name"] == "event"
        assert gate["text"].startswith("It waits for the event order.paid o-17 until ")
        assert 590 * SECOND < millis(gate["until"]) - tasks.now < 600 * SECOND


def test_the_explanation_of_a_task_in_line_names_its_ordered_key() -> None:
    """The explanation of a task in line names the ordered key, the place in line and the task ahead."""
    with Explained() as tasks:
        tasks.last(30)
        first = tasks.create(order={"key": "customer-17"})
        tasks.run(SECOND)
        second = tasks.create(order={"key": "customer-17"})
        tasks.run(5 * SECOND)
        gate = waiting(why(tasks, second))
        line = gate["waits_for"]["order"]
        assert (gate["name"], line["key"], line["position"]) == ("order", "customer-17", 2)
        assert [each["task_id"] for each in line["tasks"]] == [first]


def test_a_task_waits_for_the_members_of_its_group() -> None:
    """The explanation of a group's following task names the group whose members must end."""
    with Explained() as tasks:
        tasks.create(HOUR, group={"id": "import-17"})
        closing = {"on_complete": {"task": {"type": PLAIN}}}
        after = tasks.ask("PUT", "/v1/groups/import-17", closing).body["on_complete"]["task_id"]
        tasks.run(5 * SECOND)
        gate = waiting(why(tasks, after))
        assert (gate["name"], "import-17" in gate["text"]) == ("group", True)


def test_each_gate_has_a_test_in_this_module() -> None:
    """The name of each gate occurs in this module."""
    tried = Path(__file__).read_text("utf-8")
    of_previews = {GateName.UNIQUE_KEY, GateName.QUOTA}
    assert [gate.value for gate in GateName if f'"{gate.value}"' not in tried and gate not in of_previews] == []


def test_the_record_of_a_task_on_time_has_no_data_about_waits() -> None:
    """The record of a task that starts on time has no data about waits."""
    with Explained() as tasks:
        task_id = tasks.create(MINUTE)
        tasks.run(2 * MINUTE)
        assert tasks.record(task_id).waits == ()
        assert set(spent(why(tasks, task_id))) <= {"due", "dispatch", "run"}


def test_a_pulled_task_that_nobody_leases_waits_on_its_queue() -> None:
    """If no pull worker has asked for a task's type, the explanation says so."""
    with Explained() as tasks:
        task_id = tasks.create(kind=PULLED)
        tasks.run(30 * SECOND)
        gate = waiting(why(tasks, task_id))
        assert (gate["name"], gate["waits_for"]["queue"]["is_pulled"]) == ("queue", True)
        assert f"no pull worker of {PULLED}" in gate["text"]


def test_a_task_waits_for_its_lock() -> None:
    """For a task that waits for a lock, the explanation names the holder and the place in line, and later the wait."""
    with Explained() as tasks:
        tasks.last(60)
        ids = []
        for _ in range(3):
            ids.append(tasks.create(lock=LOCK, timeout_seconds=100))
            tasks.run(SECOND)
        tasks.run(20 * SECOND)
        first, second, third = ids
        for position, task_id in enumerate((second, third), 1):
            gate = waiting(body := why(tasks, task_id))
            lock = gate["waits_for"]["lock"]
            assert (gate["name"], lock["key"], lock["position"]) == ("lock", "db-17", position)
            assert [each["task_id"] for each in lock["holders"]] == [first]
            assert millis(lock["holders"][0]["since"]) == tasks.record(first).started_at
            assert 15 * SECOND < gate["duration_ms"] < 25 * SECOND
            assert ahead(body) == []
        tasks.run(3 * MINUTE)
        for task_id, waited in ((first, 0), (second, 59), (third, 118)):
            body = why(tasks, task_id)
            assert body["state"] == "succeeded"
            assert spent(body).get("lock", 0) == pytest.approx(waited * SECOND, abs=3 * SECOND)
            assert spent(body)["run"] == pytest.approx(60 * SECOND, abs=SECOND)
            assert set(spent(body)) <= {"lock", "run", "dispatch", "due", "follow_up"}


def test_a_task_that_is_run_before_its_time_waits_for_its_lock() -> None:
    """A task that is run early waits for its lock; if it is postponed, it waits for its new due time."""
    with Explained() as tasks:
        tasks.last(60)
        tasks.create(lock=LOCK, timeout_seconds=100)
        tasks.run(SECOND)
        early = tasks.create(2 * HOUR, lock=LOCK)
        tasks.do(early, "run")
        tasks.run(10 * SECOND)
        assert waiting(why(tasks, early))["name"] == "lock"
        assert tasks.ask("PATCH", f"/v1/tasks/{early}", {"delay_seconds": 3600}).status == 200
        assert waiting(why(tasks, early))["name"] == "due"


def test_a_task_waits_for_a_switch() -> None:
    """For a stopped task, the explanation shows the stop's actor, time and reason, and later its duration."""
    with Explained() as tasks:
        tasks.ask("PUT", STOP, {"stopped": True, "reason": "an incident"})
        set_at, task_id = tasks.now, tasks.create()
        tasks.run(10 * MINUTE)
        gate = waiting(why(tasks, task_id))
        switch = gate["waits_for"]["switch"]
        assert (gate["name"], switch["scope"], switch["name"]) == ("switch", "type", PLAIN)
        assert (switch["reason"], switch["updated_by"], switch["stopped"]) == ("an incident", "local", True)
        assert abs(millis(switch["updated_at"]) - set_at) < SECOND
        assert gate["duration_ms"] == pytest.approx(10 * MINUTE, abs=5 * SECOND)
        assert "an incident" in gate["text"]
        tasks.ask("DELETE", STOP)
        gate = waiting(why(tasks, task_id))
        assert "no longer blocks it" in gate["text"]
        assert gate["waits_for"] is None
        tasks.run(2 * MINUTE)
        assert spent(body := why(tasks, task_id))["switch"] >= 10 * MINUTE
        assert body["text"].startswith("It ended 1")


def test_a_task_waits_for_a_limit_of_running_tasks() -> None:
    """The explanation of a concurrency limit shows the limit, its usage and the place in line, but no other task."""
    with Explained() as tasks:
        tasks.ask("PUT", STOP, {"max_concurrent": 1, "reason": "a small database"})
        tasks.run(10 * SECOND)
        tasks.last(60)
        first = tasks.create(timeout_seconds=100)
        tasks.run(SECOND)
        second = tasks.create()
        tasks.run(20 * SECOND)
        gate = waiting(why(tasks, second))
        switch = gate["waits_for"]["switch"]
        assert (gate["name"], switch["max_concurrent"], switch["running"]) == ("concurrency_limit", 1, 1)
        assert (switch["position"], switch["reason"]) == (1, "a small database")
        assert first not in str(gate)


def test_a_task_waits_for_the_circuit_of_its_host() -> None:
    """For a task behind an open circuit, the explanation names the host and the time when the circuit opened."""
    with Explained() as tasks:

        def fail(_phase: str, _context: object) -> str:
            raise ConnectionError

        tasks.target = fail
        retry = {"max_attempts": 20, "initial_seconds": 1, "max_seconds": 1}
        ids = [tasks.create(target=CALL, retry=retry) for _ in range(3)]

        def held() -> str:
            return next((each for each in ids if "circuit" in (tasks.record(each).waiting_for or "")), "")

        assert tasks.run_until(held, within=HOUR)
        gate = waiting(why(tasks, held()))
        circuit = gate["waits_for"]["circuit"]
        assert gate["name"] == "circuit"
        assert circuit["host"] in URL
        assert circuit["host"] in gate["text"]
        assert millis(circuit["opened_at"]) <= tasks.now


def test_a_task_waits_for_its_next_attempt() -> None:
    """For a task that waits for its retry, the explanation shows the attempt's number and time, and the last error."""
    with Explained() as tasks:
        tasks.fail(attempts=1)
        task_id = tasks.create(retry=PATIENT)
        tasks.run(2 * SECOND)
        gate = waiting(why(tasks, task_id))
        retry = gate["waits_for"]["retry"]
        assert (gate["name"], retry["attempt"], retry["max_attempts"]) == ("retry", 2, 5)
        assert retry["error"] == {"type": "ValueError", "message": "run 1"}
        assert millis(gate["until"]) == tasks.record(task_id).next_at
        assert tasks.run_until(lambda: tasks.record(task_id).finished_at)
        body = why(tasks, task_id)
        names = [gate["name"] for gate in body["gates"] if gate["duration_ms"] or gate["name"] == "run"]
        assert names.count("retry") == 1
        assert spent(body)["retry"] > 0.9 * body["overdue_ms"]
        assert "ValueError" in next(gate["text"] for gate in body["gates"] if gate["name"] == "run")


def test_the_explanation_of_a_running_task_names_its_worker() -> None:
    """The explanation of a running task shows its worker, the last heartbeat and open requests."""
    with Explained() as tasks:
        tasks.last(50)
        task_id = tasks.create()
        tasks.run(21 * SECOND)
        tasks.do(task_id, "pause")
        gate = waiting(why(tasks, task_id))
        record = tasks.record(task_id)
        assert gate["name"] == "run"
        assert gate["waits_for"]["lease"]["worker"] == record.lease_worker
        assert 0 <= tasks.now - millis(gate["waits_for"]["lease"]["heartbeat_at"]) < 15 * SECOND
        assert "has been asked to pause" in gate["text"]
        assert millis(gate["since"]) == record.started_at


def test_a_task_whose_target_accepted_it_waits_for_the_report() -> None:
    """The explanation of an accepted task shows the time until which the target can report."""
    with Explained() as tasks:
        tasks.target = lambda _phase, _context: Accepted()
        task_id = tasks.create(notify_within_seconds=3600)
        tasks.run(MINUTE)
        gate = waiting(why(tasks, task_id))
        assert gate["name"] == "notification"
        assert gate["until"] == gate["waits_for"]["lease"]["expires_at"]
        assert "to report the outcome" in gate["text"]


def test_a_task_whose_worker_is_lost_waits_to_be_taken_over() -> None:
    """After a worker is lost, the explanation shows the wait for another worker, and later how long it took."""
    with Explained() as tasks:
        tasks.hang()
        task_id = tasks.create(timeout_seconds=800)
        tasks.run(10 * SECOND)
        tasks.receiving = tasks.ticking = False
        tasks.kill()
        expires = tasks.record(task_id).lease_expires_at or 0
        tasks.run(3 * MINUTE)
        tasks.ticking = True
        gate = waiting(body := why(tasks, task_id))
        assert (gate["name"], millis(gate["since"])) == ("recovery", expires)
        assert body["gates"][-2]["name"] == "run"
        tasks.receive_again()
        assert tasks.run_until(lambda: tasks.record(task_id).finished_at)
        body = why(tasks, task_id)
        assert spent(body)["recovery"] > 2 * MINUTE
        assert "lost with its worker" in str(body["gates"])


def test_a_paused_task_waits_for_its_user() -> None:
    """The explanation of a paused task says since when it is paused, and later for how long it was paused."""
    with Explained() as tasks:
        task_id = tasks.create(10 * MINUTE)
        tasks.run(MINUTE)
        tasks.do(task_id, "pause")
        paused_at = tasks.now
        tasks.run(30 * MINUTE)
        gate = waiting(why(tasks, task_id))
        assert gate["name"] == "paused"
        assert abs(millis(gate["since"]) - paused_at) < SECOND
        tasks.do(task_id, "resume")
        assert tasks.run_until(lambda: tasks.record(task_id).finished_at)
        body = why(tasks, task_id)
        assert spent(body)["paused"] == pytest.approx(30 * MINUTE, abs=2 * SECOND)
        assert spent(body)["due"] == pytest.approx(MINUTE, abs=2 * SECOND)


def test_a_task_that_is_resumed_before_its_time_waits_for_its_time_again() -> None:
    """In the explanation of a resumed task, the paused part ends at the resume and not at the due time."""
    with Explained() as tasks:
        task_id = tasks.create(20 * MINUTE)
        tasks.do(task_id, "pause")
        tasks.run(5 * MINUTE)
        tasks.do(task_id, "resume")
        tasks.run(5 * MINUTE)
        body = why(tasks, task_id)
        assert waiting(body)["name"] == "due"
        assert spent(body)["paused"] == pytest.approx(5 * MINUTE, abs=2 * SECOND)
        tasks.run(15 * MINUTE)
        assert why(tasks, task_id)["overdue_ms"] < SECOND


def test_a_node_waits_for_its_parents() -> None:
    """A node's explanation names its open parents; its topology's explanation names the running nodes."""
    with Graphs() as graphs:
        graphs.faulty = True
        graphs.target = lambda _phase, _context: graphs.take(60 * SECOND)
        nodes: dict[str, dict[str, Any]] = {
            "a": {"type": PLAIN},
            "b": {"type": PLAIN},
            "c": {"type": PLAIN, "depends_on": ["a", "b"]},
        }
        graphs.submit(nodes)
        assert graphs.run_until(lambda: graphs.has_node("c") and graphs.node("a").started_at)
        graphs.run(20 * SECOND)
        gate = waiting(why(graphs, graphs.node("c").id.text))
        assert gate["name"] == "parents"
        assert sorted(each["node"] for each in gate["waits_for"]["tasks"]) == ["a", "b"]
        whole = waiting(why(graphs, graphs.topology))
        assert sorted(each["node"] for each in whole["waits_for"]["tasks"]) == ["a", "b"]
        graphs.run_until_ended()
        body = why(graphs, graphs.node("c").id.text)
        assert spent(body)["parents"] == pytest.approx(60 * SECOND, abs=5 * SECOND)
        assert spent(body)["run"] == pytest.approx(60 * SECOND, abs=SECOND)


def test_a_run_waits_for_an_earlier_run_of_its_schedule() -> None:
    """The explanation of a run that waits for an earlier run names the active run."""
    with Schedules() as schedules:
        schedules.last(150)
        schedules.make(overlap="buffer_one")
        assert schedules.run_until(lambda: any(task.waiting_for for task in schedules.placed()), within=10 * MINUTE)
        held = next(task for task in schedules.placed() if task.waiting_for)
        running = next(task for task in schedules.placed() if task.state == "running")
        gate = waiting(why(schedules, held.id.text))
        assert gate["name"] == "overlap"
        assert [each["task_id"] for each in gate["waits_for"]["tasks"]] == [running.id.text]


def test_a_run_of_a_paused_schedule_will_be_skipped() -> None:
    """The explanation of a placed occurrence shows its schedule's pause and the reason."""
    with Schedules() as schedules:
        schedules.make()
        schedules.run(10 * SECOND)
        schedules.control("pause", {"reason": "a release"})
        placed = next(task for task in schedules.placed() if task.state == "scheduled")
        body = why(schedules, placed.id.text)
        assert (waiting(body)["name"], ahead(body)) == ("due", ["schedule"])
        holding = body["gates"][-1]["waits_for"]["schedule"]
        assert (holding["state"], holding["reason"]) == ("paused", "a release")
        schedules.run(3 * MINUTE)
        assert "paused" in why(schedules, placed.id.text)["text"]
        assert schedules.ask("DELETE", SCHEDULE).status == 200


def test_the_explanation_of_an_ended_task_separates_waits_retries_and_runs() -> None:
    """In the explanation, waits, retries and runs are separate parts, and the text names the longest part first."""
    with Explained() as tasks:
        tasks.fail(attempts=1)
        tasks.ask("PUT", STOP, {"stopped": True})
        task_id = tasks.create(retry={"max_attempts": 3, "initial_seconds": 60, "max_seconds": 60})
        tasks.run(5 * MINUTE)
        tasks.ask("DELETE", STOP)
        assert tasks.run_until(lambda: tasks.record(task_id).finished_at)
        body = why(tasks, task_id)
        found = spent(body)
        assert found["switch"] > found["retry"] > found["run"]
        assert body["text"].index("switch") < body["text"].index("retry")
        assert {gate["state"] for gate in body["gates"]} == {"passed"}


def test_the_explanation_separates_the_time_before_a_users_retry() -> None:
    """In the explanation, the time between a failure and a user's retry is a separate part."""
    with Explained() as tasks:
        tasks.target = lambda _phase, _context: 1 / 0
        task_id = tasks.create(retry=ONCE)
        tasks.run(10 * SECOND)
        tasks.run(HOUR)
        tasks.target = lambda _phase, _context: "done"
        tasks.do(task_id, "retry")
        tasks.run(10 * SECOND)
        assert tasks.state(task_id) == "succeeded"
        body = why(tasks, task_id)
        assert spent(body)["ended"] == pytest.approx(HOUR, abs=20 * SECOND)


def test_the_explanation_includes_attempts_stored_outside_the_record() -> None:
    """In the explanation, attempts that are stored outside the record have their own parts."""
    with Explained() as tasks:
        tasks.fail(attempts=8)
        task_id = tasks.create(retry={"max_attempts": 10, "initial_seconds": 5, "max_seconds": 5})
        assert tasks.run_until(lambda: tasks.record(task_id).finished_at)
        body = why(tasks, task_id)
        runs = [gate for gate in body["gates"] if gate["name"] == "run"]
        assert len(runs) + sum(gate["name"] == "not_recorded" for gate in body["gates"]) == 9


def test_a_task_cancelled_before_its_time_is_not_late() -> None:
    """For a task that is cancelled before its due time, the explanation is only a wait for the due time."""
    with Explained() as tasks:
        task_id = tasks.create(HOUR)
        tasks.run(MINUTE)
        tasks.cancel(task_id)
        body = why(tasks, task_id)
        assert (body["overdue_ms"], list(spent(body))) == (0, ["due"])
        assert "before its due time" in body["text"]


def test_explaining_another_owners_task_returns_404() -> None:
    """Explaining another owner's task returns 404."""
    with Explained() as tasks:
        task_id = tasks.create(HOUR)
        reply = tasks.ask("GET", f"/v1/tasks/{task_id}/explain", headers={"X-Duetime-Owner": "somebody-else"})
        assert (reply.status, reply.body["code"]) == (404, "task_not_found")


def test_an_explanation_makes_few_reads_and_no_writes() -> None:
    """An explanation makes few reads and no writes."""
    with Explained() as tasks:
        tasks.ask("PUT", STOP, {"max_concurrent": 50})
        tasks.last(60)
        plain = tasks.create()
        tasks.create(lock=LOCK)
        tasks.run(SECOND)
        locked = tasks.create(lock=LOCK)
        assert tasks.run_until(lambda: tasks.record(plain).finished_at and tasks.record(locked).waiting_for)
        for task_id, most in (
            (plain, {"get_item": 1, "query": 1}),
            (locked, {"get_item": 1, "query": 3, "batch_get_item": 1}),
        ):
            calls: Counter[str] = Counter()

            def count(call: Call, calls: Counter[str] = calls) -> None:
                if call.machine.function == "api":
                    calls[call.operation] += 1

            tasks.before_call = count
            why(tasks, task_id)
            assert calls == most


def test_a_task_waits_for_handlers_that_cannot_be_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """If handlers cannot be imported, the explanation shows the import error, and later the length of the wait."""
    with Explained() as tasks:
        tasks.environ[Variable.HANDLERS] = PACKAGE
        task_id = tasks.create()
        tasks.run(90 * SECOND)
        gate = waiting(why(tasks, task_id))
        assert gate["name"] == "handlers"
        assert f"No module named {PACKAGE!r}" in gate["text"]
        assert gate["duration_ms"] == pytest.approx(90 * SECOND, abs=5 * SECOND)
        monkeypatch.setitem(sys.modules, PACKAGE, ModuleType(PACKAGE))
        assert tasks.run_until(lambda: tasks.state(task_id) == "succeeded", within=5 * MINUTE)
        assert spent(why(tasks, task_id))["handlers"] >= 90 * SECOND


def test_the_explanation_of_a_throttled_call_names_the_call() -> None:
    """If a call is throttled, the explanation names the call, and later the length of the wait."""
    with Explained() as tasks:
        tasks.refuse(lambda call: call.operation == "send_message")
        task_id = tasks.create(target={"kind": "sqs", "arn": SINK})
        tasks.run(30 * SECOND)
        gate = waiting(why(tasks, task_id))
        assert gate["name"] == "target"
        assert "send_message: RequestThrottled" in gate["text"]
        tasks.before_call = None
        assert tasks.run_until(lambda: tasks.state(task_id) == "succeeded", within=5 * MINUTE)
        assert spent(why(tasks, task_id))["target"] >= 25 * SECOND


def test_a_topology_waits_for_its_state_machine() -> None:
    """If a state machine cannot be started, the topology's explanation says so, and later how long that took."""
    with Graphs() as graphs:
        graphs.faulty = True

        def refuse(call: Call) -> None:
            if call.operation == "start_execution":
                call.refuse()

        graphs.before_call = refuse
        topology = graphs.submit({"first": {"type": PLAIN}})
        graphs.run(30 * SECOND)
        gate = waiting(why(graphs, topology))
        assert gate["name"] == "topology"
        assert "the state machine could not be started" in gate["text"]
        graphs.before_call = None
        assert graphs.run_until_ended().state == "succeeded"
        assert spent(why(graphs, topology))["topology"] >= 25 * SECOND


def test_the_explanation_attributes_a_delay_before_the_claim_to_the_worker() -> None:
    """The explanation of a late start attributes a delay between receipt and claim to the worker."""
    with Explained() as tasks:
        task_id = tasks.create(10 * SECOND)
        tasks.slow(lambda call: call.operation == "change_message_visibility_batch", 20 * SECOND)
        assert tasks.run_until(lambda: tasks.state(task_id) == "succeeded", within=5 * MINUTE)
        body = why(tasks, task_id)
        assert spent(body)["worker"] == pytest.approx(20 * SECOND, abs=2 * SECOND)
        texts = [gate["text"] for gate in body["gates"] if gate["name"] == "worker"]
        assert all("worker had received it" in text for text in texts)


def test_the_explanation_covers_the_cleanup_of_an_ended_task() -> None:
    """The explanation of an ended task shows the cleanup while it runs, and later its duration."""
    with Explained() as tasks:
        tasks.target = lambda phase, _context: tasks.take(4 * SECOND) if phase == "clean" else "done"
        task_id = tasks.create(kind=PHASED)
        assert tasks.run_until(lambda: tasks.state(task_id) == "succeeded", within=MINUTE)
        assert tasks.record(task_id).finished_at is None
        gate = waiting(why(tasks, task_id))
        assert (gate["name"], gate["text"][:18]) == ("follow_up", "It has succeeded; ")
        assert tasks.run_until(lambda: tasks.record(task_id).finished_at)
        assert spent(why(tasks, task_id))["follow_up"] == pytest.approx(4 * SECOND, abs=SECOND)
