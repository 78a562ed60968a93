"""If the API dies during a change to a schedule or topology, repeating the request completes the change."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any

import pytest

from duetime.adapters.dynamodb import schema
from duetime.handlers import Unretriable
from tests.parts import others_slow
from tests.scenarios.graphs import DIAMOND, Graphs
from tests.scenarios.graphs import PATH as TOPOLOGIES
from tests.scenarios.scenario import MINUTE, PLAIN, SECOND, Scenario
from tests.scenarios.schedules import PATH, Schedules

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duetime_testing.simulation.faults import Call

LARGE = "".join(sha256(str(number).encode()).hexdigest() for number in range(200))
"""A payload that does not fit into a record."""
LATER = 40 * SECOND
"""The time after which a client repeats its request."""
CHANGES: dict[str, tuple[str, str, Any]] = {
    "payload": ("PATCH", "", {"task": {"type": PLAIN, "payload": "new"}}),
    "content": ("PATCH", "", {"task": {"type": PLAIN, "payload": LARGE + "new"}}),
    "timing": ("PATCH", "", {"cron": "*/2 * * * *"}),
    "remaining": ("PATCH", "", {"remaining_runs": 3}),
    "pause": ("POST", "/pause", {"reason": "no paper"}),
    "resume": ("POST", "/resume", None),
    "delete": ("DELETE", "", None),
}


def half_done(scenario: Scenario, number: int, method: str, path: str, body: object) -> bool:
    """Have the API die at its nth call while it serves a request; return whether the API made that many calls."""
    calls: list[Call] = []

    def strike(call: Call) -> None:
        if call.machine.function == "api":
            calls.append(call)
            if len(calls) == number:
                call.machine.die()

    scenario.faulty = True  # a repeated change delays the tasks
    scenario.before_call = strike
    scenario.send(method, path, body)
    scenario.run(LATER)
    scenario.before_call = None
    return len(calls) >= number


def half_changed(change: str, **fields: Any) -> Iterator[tuple[int, Schedules]]:  # noqa: ANN401 - JSON
    """For each call in a change, yield a schedule after the API died at the call and the change was repeated."""
    method, path, body = CHANGES[change]
    number, dies = 0, True
    while dies:
        number += 1
        with Schedules() as schedules:
            schedules.run(MINUTE - schedules.now % MINUTE + 15 * SECOND)
            schedules.make(overlap="allow_all", **{"task": {"type": PLAIN, "payload": "old"}, **fields})
            if change == "resume":
                assert schedules.control("pause").status == 200
            dies = half_done(schedules, number, method, PATH + path, body)
            answer = schedules.ask(method, PATH + path, body)
            assert answer.status in ({200, 404} if change == "delete" else {200}), (number, answer.body)
            yield number, schedules
    assert number > 3


def begun(schedules: Schedules) -> int:
    """The number of calls to the schedule's targets."""
    return len(schedules.effects)


@pytest.mark.parametrize("change", others_slow(["pause", "delete"]))
def test_no_run_starts_after_a_repeated_stop_of_a_schedule(change: str) -> None:
    """If the API dies at any call in a request to stop a schedule, no run starts after the repeated request."""
    for number, schedules in half_changed(change):
        before = begun(schedules)
        schedules.run(5 * MINUTE)
        assert begun(schedules) == before, number


@pytest.mark.parametrize("change", others_slow(["payload", "timing", "resume"]))
def test_each_occurrence_runs_once_after_a_repeated_change(change: str) -> None:
    """If the API dies at any call in a change, the repeat applies the change, and each occurrence runs once."""
    for number, schedules in half_changed(change):
        since = schedules.now
        schedules.run(6 * MINUTE + MINUTE // 2 - schedules.now % MINUTE)
        step = 2 * MINUTE if change == "timing" else MINUTE
        wanted = [at for at in schedules.minutes(since, schedules.now - SECOND) if at % step == 0]
        ran = schedules.ran()
        assert {at: count for at, count in ran.items() if at >= since} == dict.fromkeys(wanted, 1), number
        assert max(ran.values()) == 1, number
        if change == "payload":
            last = schedules.ask("GET", f"/v1/tasks/{schedules.placed()[-1].id}").body
            assert last["payload"] == "new", number


@pytest.mark.slow
def test_at_most_three_runs_start_after_a_repeated_change_to_three_runs() -> None:
    """If the API dies at any call in a change to three remaining runs, at most three runs start after the repeat."""
    for number, schedules in half_changed("remaining"):
        before = begun(schedules)
        schedules.run(8 * MINUTE)
        assert begun(schedules) - before <= 3, number
        assert begun(schedules) >= 3, number
        assert schedules.schedule()["state"] == "ended", number


@pytest.mark.slow
@pytest.mark.parametrize("change", ["content", "delete"])
def test_all_payloads_expire_after_a_repeated_change_and_a_deletion(change: str) -> None:
    """If the API dies at any call in a change that is then repeated, all contents expire after a deletion."""
    for number, schedules in half_changed(change, task={"type": PLAIN, "payload": LARGE + "old"}):
        if change == "content":
            assert schedules.ask("DELETE", PATH).status == 200
        schedules.run(8 * MINUTE)
        kept = [item for item in schedules.items("x#") if schema.TTL not in item]
        assert kept == [], number


@pytest.mark.parametrize("next_request", others_slow(["none", "create"]))
def test_a_payload_expires_after_an_interrupted_deletion_of_its_schedule(next_request: str) -> None:
    """If the API dies at any call in a deletion, the payload expires, unless the schedule still exists."""
    number, dies = 0, True
    while dies:
        number += 1
        with Schedules() as schedules:
            schedules.make(cron="0 0 1 1 *", task={"type": PLAIN, "payload": LARGE})
            dies = half_done(schedules, number, "DELETE", PATH, None)
            is_left = schedules.ask("GET", PATH).status == 200
            if next_request == "create" and not is_left:
                schedules.make(cron="0 0 1 1 *")
            schedules.run(8 * MINUTE)
            kept = [item for item in schedules.items("x#") if schema.TTL not in item]
            assert len(kept) == is_left, number
    assert number > 3


VERBS = ["pause", "resume", "cancel", "retry"]


def half_controlled(verb: str) -> Iterator[tuple[int, Graphs]]:
    """For each call in a request, yield a topology after the API died at the call and the request was repeated."""
    number, dies = 0, True
    while dies:
        number += 1
        with Graphs() as graphs:
            fails = [verb == "retry"]
            graphs.target = lambda _phase, context: behave(graphs, context, fails)  # noqa: B023 - called at once
            graphs.submit({**DIAMOND, "late": {"type": PLAIN, "delay_seconds": 50}})
            if verb == "retry":
                graphs.run_until_ended()
            else:
                graphs.run(4 * SECOND)
            fails[0] = False
            if verb == "resume":
                assert graphs.ask("POST", f"{TOPOLOGIES}/{graphs.topology}/pause").status in {200, 202}
                graphs.run(10 * SECOND)
            path = f"{TOPOLOGIES}/{graphs.topology}/{verb}"
            dies = half_done(graphs, number, "POST", path, None)
            answer = graphs.ask("POST", path)
            assert answer.status in {200, 202, 409}, (number, answer.body)
            yield number, graphs
    assert number > 3


def behave(graphs: Graphs, context: Any, fails: list[bool]) -> str:  # noqa: ANN401 - a handler gets it
    """Take three seconds, then fail if a failure is wanted and this is the first attempt of `left`."""
    graphs.take(3 * SECOND)
    if fails[0] and graphs.key_of(context.task_id) == "left" and graphs.record(context.task_id).attempt == 1:
        raise Unretriable("no")
    return "done"


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS)
def test_a_repeated_request_to_a_topology_is_completed(verb: str) -> None:
    """If the API dies at any call in a request, a repeat pauses, resumes, cancels or retries all of the topology."""
    for number, graphs in half_controlled(verb):
        if verb in {"pause", "cancel"}:
            graphs.run(5 * SECOND)
            before = list(graphs.ran)
            graphs.run(3 * MINUTE)
            assert graphs.ran == before, number
        if verb == "pause":
            assert graphs.ask("POST", f"{TOPOLOGIES}/{graphs.topology}/resume").status in {200, 202}
        ended = graphs.run_until_ended()
        assert ended.state == ("cancelled" if verb == "cancel" else "succeeded"), number
        if verb != "cancel":
            again = ["left"] if verb == "retry" else []
            assert sorted(graphs.ran) == sorted([*DIAMOND, "late", *again]), number


@pytest.mark.slow
def test_a_repeated_deletion_of_a_topology_deletes_all_nodes_and_payloads() -> None:
    """If the API dies at any call in a deletion, its repeat deletes all nodes and their payloads."""
    number, dies = 0, True
    while dies:
        number += 1
        with Graphs() as graphs:
            graphs.submit({**DIAMOND, "large": {"type": PLAIN, "payload": LARGE}})
            graphs.run_until_ended()
            path = f"/v1/tasks/{graphs.topology}"
            dies = half_done(graphs, number, "DELETE", path, None)
            assert graphs.ask("DELETE", path).status in {204, 404}
            graphs.run(5 * MINUTE)
            assert graphs.ask("GET", "/v1/tasks").body["tasks"] == [], number
            assert LARGE not in str(graphs.items()), number
    assert number > 4
