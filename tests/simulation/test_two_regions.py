"""Tests of a second Region that takes over, while the first Region is active, drains, is lost, or returns."""

from __future__ import annotations

from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from duetime.domain.operating_parameters import FENCES_PER_EPOCH
from duetime.domain.regions import ActiveRegion
from duetime.domain.tasks.states import State
from duetime.domain.times import HOUR, MINUTE, SECOND
from duetime.handlers import Accepted
from duetime_testing.simulation.gateway import event_of
from tests.simulation import works
from tests.simulation.two_regions import FIRST, SECOND_REGION, Situation, TwoRegionSimulation, in_two_regions

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from duetime.domain.tasks.task import Task
    from tests.simulation.busy_users import Answer
    from tests.simulation.two_regions import RegionalAccount


@contextmanager
def simulation(situation: Situation = Situation.PLANNED) -> Iterator[TwoRegionSimulation]:
    """Two Regions without users, in which targets succeed at once."""
    made = TwoRegionSimulation(1, situation)
    made.behave = lambda _phase, _context: "done"
    try:
        yield made
        assert not made.violations
    finally:
        made.end()


def asked(world: TwoRegionSimulation, method: str, path: str, body: object = None) -> Answer | None:
    """Send a request from outside virtual time, and return `None` if the request was refused or lost."""
    answers: list[Answer | None] = []
    world.in_time(lambda: answers.append(world.ask(method, path, body)))
    return answers[0]


def create(world: TwoRegionSimulation, path: str = "/v1/tasks", **fields: Any) -> str:  # noqa: ANN401 - any JSON
    """Create a task, a topology or a schedule, and return its id."""
    body = {"type": works.PLAIN, "notify_within_seconds": 60, **fields} if path == "/v1/tasks" else fields
    answer = asked(world, "POST", path, body)
    assert answer is not None
    assert answer.status == 201, answer.body
    return str(answer.body.get("id", ""))


def status_of(account: RegionalAccount, method: str, path: str, text: str | None = None) -> tuple[int, str]:
    """Send a request to a Region, and return the status and the body of the response."""
    found: list[tuple[int, str]] = []

    def ask() -> None:
        end = account.wait_for(account.invoke("api", event_of(method, path, text, {}, "", None, is_base64=False)))
        found.append((end.answer["statusCode"], end.answer["body"]))

    account.world.in_time(ask)
    return found[0]


def until(world: TwoRegionSimulation, is_so: Callable[[], object], within: int = 10 * MINUTE) -> None:
    """Let time pass until a condition is true."""
    end = world.time.now() + within
    while not is_so():
        assert world.time.now() < end, "it did not become so in time"
        world.run(SECOND)


def take_over(world: TwoRegionSimulation, *, is_forced: bool = False) -> None:
    """Let the second Region take over, and send later requests to it."""
    world.in_time(partial(world.take_over, is_forced=is_forced))
    world.front = SECOND_REGION


def runs_of(world: TwoRegionSimulation, task_id: str) -> list[tuple[str, int]]:
    """The Region and the fence of each run of a task."""
    return [
        (getattr(each, "region", ""), each.fence)
        for each in world.effects
        if each.task_id == task_id and each.phase == "run"
    ]


def test_a_standby_region_answers_reads_and_rejects_changes() -> None:
    """A standby Region answers reads, and refuses changes with an error that names the active Region."""
    with simulation() as world:
        task_id = create(world, delay_seconds=3600)
        world.run(10 * SECOND)
        assert status_of(world.second, "GET", f"/v1/tasks/{task_id}")[0] == 200
        status, body = status_of(world.second, "POST", "/v1/tasks", '{"type": "simulation-plain"}')
        assert (status, "region_not_active" in body, f"the Region {FIRST} is active" in body) == (503, True, True)


def test_a_standby_region_sends_no_tasks_and_measures_its_alarms_metrics() -> None:
    """A standby Region's trigger is invoked each minute and measures its alarms' metrics, but sends no tasks."""
    with simulation() as world:
        task_id = create(world, delay_seconds=90)
        until(world, lambda: runs_of(world, task_id))
        world.run(3 * MINUTE)
        assert runs_of(world, task_id) == [(FIRST, 1)]
        triggers = [each for each in world.second.machines if each.function == "trigger"]
        assert triggers
        measured = [name for each in triggers for name, *_ in each.facts.measures]
        assert {"cursor_lag", "tick_age"} <= set(measured)
        assert not any(queue.messages for queue in world.second.sqs.queues.values())


def test_a_planned_switch_over_repeats_no_task() -> None:
    """A planned switch-over lets running tasks end in the first Region.

    Later tasks run in the second Region, with a fence of that Region's epoch.
    """
    with simulation() as world:

        def slow(_phase: str, _context: object) -> str:
            world.take(20 * SECOND)
            return "done"

        world.behave = slow
        running, later = create(world), create(world, delay_seconds=600)
        until(world, lambda: runs_of(world, running))
        take_over(world)
        until(world, lambda: runs_of(world, later), HOUR)
        assert runs_of(world, running) == [(FIRST, 1)]
        assert runs_of(world, later) == [(SECOND_REGION, FENCES_PER_EPOCH + 1)]
        assert not world.reports[0].tasks["cut_off"]
        # The task is on time, because the second Region reads every minute after the switch-over.
        (task,) = (each for each in world.second.tasks() if each.id.text == later)
        assert task.started_at is not None
        assert task.started_at - task.due_at < SECOND
        new = create(world)
        until(world, lambda: runs_of(world, new))
        assert runs_of(world, new) == [(SECOND_REGION, FENCES_PER_EPOCH + 1)]


def test_an_attempt_may_report_its_end_while_its_region_drains() -> None:
    """A target can report an attempt's end while its Region drains, so that the task does not run again."""
    with simulation() as world:
        world.behave = lambda _phase, _context: Accepted()
        task_id = create(world, notify_within_seconds=600)
        until(world, lambda: any(task.awaiting_notification for task in world.first.tasks()))
        ((_, fence),) = runs_of(world, task_id)

        def notify() -> None:
            world.take(20 * SECOND)
            world.ask("POST", f"/v1/tasks/{task_id}/notify", {"fence": fence, "outcome": "succeeded"})

        world.time.start_process(notify)
        take_over(world)
        world.run(HOUR)
        assert runs_of(world, task_id) == [(FIRST, 1)]
        assert [task.state.value for task in world.second.tasks()] == ["succeeded"]


def test_a_task_whose_timer_was_not_replicated_still_runs() -> None:
    """If the timer for a task's later retry was not replicated, the takeover writes the timer again."""
    with simulation(Situation.LOST) as world:

        def fails(_phase: str, _context: object) -> str:
            raise ValueError("not now")

        world.behave = fails
        task_id = create(world, retry={"max_attempts": 2, "initial_seconds": 3600, "max_seconds": 3600})
        until(world, lambda: runs_of(world, task_id))
        world.run(10 * SECOND)
        for key in [world.second.table.key_of(item) for item in world.second.table.every()]:
            if "#w#" in key[1]:
                world.second.table.write(world.time.now(), key, None)
        world.links[1].cut()
        world.first.lose()
        take_over(world, is_forced=True)
        world.behave = lambda _phase, _context: "done"
        until(world, lambda: len(runs_of(world, task_id)) == 2, 2 * HOUR)
        assert runs_of(world, task_id)[1][0] == SECOND_REGION


def test_a_schedule_whose_timer_was_not_replicated_continues() -> None:
    """If the timer of a schedule was not replicated, the takeover writes the timer again."""
    with simulation(Situation.LOST) as world:
        create(world, "/v1/schedules", name="often", rate="1 minute", task={"type": works.PLAIN})
        # This time is longer than the time by which the cursors are set back.
        world.run(20 * MINUTE)
        for key in [world.second.table.key_of(item) for item in world.second.table.every()]:
            if "#s#" in key[1]:
                world.second.table.write(world.time.now(), key, None)
        world.links[1].cut()
        world.first.lose()
        take_over(world, is_forced=True)
        world.run(HOUR)
        there = [each for each in world.effects if getattr(each, "region", "") == SECOND_REGION]
        assert len(there) > 50


def create_topology(world: TwoRegionSimulation) -> str:
    """Create a topology of two nodes, one after the other, whose work takes half a minute, and return its id."""

    def slow(_phase: str, _context: object) -> str:
        world.take(30 * SECOND)
        return "done"

    world.behave = slow
    limits = {"timeout_seconds": 60, "notify_within_seconds": 60}
    nodes = {key: {"type": works.PLAIN, "depends_on": on, **limits} for key, on in {"a": [], "b": ["a"]}.items()}
    return create(world, "/v1/topologies", nodes=nodes)


def forget(account: RegionalAccount, is_lost: Callable[[tuple[str, str]], bool]) -> None:
    """Delete some items in a Region, as if they had not been replicated."""
    for key in [account.table.key_of(item) for item in account.table.every()]:
        if is_lost(key):
            account.table.write(account.time.now(), key, None)


def nodes_of(account: RegionalAccount, topology_id: str) -> list[Task]:
    """The tasks of a topology's nodes, in all its plans."""
    return [each for each in account.tasks() if each.node_ref and each.node_ref.topology.text == topology_id]


def lose_while_it_runs(world: TwoRegionSimulation, is_lost: Callable[[str, tuple[str, str]], bool]) -> str:
    """Lose the first Region and some items while a topology's first node runs, and let the second Region take over."""
    topology_id = create_topology(world)
    until(world, lambda: any(each.phase == "run" for each in world.effects))
    world.run(10 * SECOND)
    for link in world.links:
        link.cut()
    world.first.lose()
    forget(world.second, partial(is_lost, topology_id))
    take_over(world, is_forced=True)
    return topology_id


def is_plan(topology_id: str, key: tuple[str, str]) -> bool:
    """Whether an item records the progress of a topology."""
    return topology_id in key[0] and key[1] == "head"


def test_nodes_of_a_plan_that_was_not_replicated_are_cancelled() -> None:
    """Nodes of a plan that was not replicated are cancelled, and the topology runs with the nodes of a new plan."""
    with simulation(Situation.LOST) as world:
        topology_id = lose_while_it_runs(world, is_plan)
        until(world, lambda: not world.open_tasks())
        ended = {(each.node_ref.key, each.state.value) for each in nodes_of(world.second, topology_id) if each.node_ref}
        assert ended == {("a", "cancelled"), ("b", "cancelled"), ("a", "succeeded"), ("b", "succeeded")}
        errors = {each.error.type for each in nodes_of(world.second, topology_id) if each.error is not None}
        assert errors == {"PlanLost"}
        assert world.reports[0].tasks["cancelled"] == 2


def test_nodes_whose_topology_was_not_replicated_are_cancelled() -> None:
    """Nodes whose topology was not replicated are cancelled, because nothing else would start or end them."""
    with simulation(Situation.LOST) as world:
        topology_id = lose_while_it_runs(world, lambda topology_id, key: topology_id in {key[0][2:], key[1]})
        until(world, lambda: not world.open_tasks())
        assert topology_id not in {each.id.text for each in world.second.tasks()}
        assert [each.state.value for each in nodes_of(world.second, topology_id)] == ["cancelled", "cancelled"]


def test_nodes_that_were_not_replicated_are_created_by_the_replicated_plan() -> None:
    """Nodes that were not replicated are created with the ids in the replicated plan."""
    with simulation(Situation.LOST) as world:
        blocked: list[str] = []

        def is_blocked(_topology_id: str, key: tuple[str, str]) -> bool:
            blocked.extend(each.id.text for each in world.second.tasks() if each.state is State.BLOCKED)
            return key[1] in blocked

        topology_id = lose_while_it_runs(world, is_blocked)
        until(world, lambda: not world.open_tasks())
        found = {each.node_ref.key: each for each in nodes_of(world.second, topology_id) if each.node_ref}
        assert {key: each.state.value for key, each in found.items()} == {"a": "succeeded", "b": "succeeded"}
        assert found["b"].id.text in blocked


def test_nodes_of_a_plan_that_arrives_late_are_cancelled() -> None:
    """Nodes of a lost Region's plan are cancelled if the plan arrives after the second Region has made another plan."""
    with simulation(Situation.RETURNED) as world:
        for link in world.links:
            link.cut()
        topology_id = create_topology(world)
        until(world, lambda: len(nodes_of(world.first, topology_id)) == 2)
        world.first.lose()
        # Only the topology's task has been replicated.
        for key, item in [(world.first.table.key_of(each), each) for each in world.first.table.every()]:
            if key[1] == topology_id:
                world.second.arrived(key, dict(item), world.first.table.stamps[key])
        take_over(world, is_forced=True)
        until(world, lambda: not world.open_tasks())
        world.first.come_back()
        for link in world.links:
            link.heal()
        world.run(10 * SECOND)
        assert any(each.state is State.BLOCKED for each in nodes_of(world.second, topology_id))
        world.in_time(partial(world.take_over, is_forced=True))
        until(world, lambda: not world.open_tasks())
        assert len(nodes_of(world.second, topology_id)) == 4


def test_the_old_region_stops_when_replication_reaches_it() -> None:
    """After a forced takeover, the old Region starts no task once it has received the takeover's record."""
    with simulation(Situation.BOTH_LIVE) as world:
        task_id = create(world, delay_seconds=600)
        take_over(world, is_forced=True)
        until(world, lambda: runs_of(world, task_id), HOUR)
        world.run(10 * MINUTE)
        assert [region for region, _ in runs_of(world, task_id)] == [SECOND_REGION]
        assert status_of(world.first, "POST", "/v1/tasks", '{"type": "simulation-plain"}')[0] == 503


def test_a_task_that_a_lost_region_had_not_replicated_runs_after_its_return() -> None:
    """A task that arrives only when its lost Region returns runs after a second takeover, which writes its timer."""
    with simulation(Situation.RETURNED) as world:
        world.links[0].cut()
        task_id = create(world, delay_seconds=60)
        world.first.lose()
        world.links[1].cut()
        take_over(world, is_forced=True)
        world.run(5 * MINUTE)
        assert not runs_of(world, task_id)
        for link in world.links:
            link.heal()
        world.run(10 * SECOND)
        world.in_time(partial(world.take_over, is_forced=True))
        until(world, lambda: runs_of(world, task_id))
        assert runs_of(world, task_id)[0][0] == SECOND_REGION


def test_an_interrupted_takeover_stops_both_regions_until_it_is_repeated() -> None:
    """After an interrupted takeover, no Region runs tasks until the takeover is repeated."""
    with simulation() as world:
        task_id = create(world, delay_seconds=60)
        world.run(5 * SECOND)
        closed = ActiveRegion(SECOND_REGION, 1, world.time.now(), is_open=False)
        for account in world.regions.values():
            world.in_time(partial(_save, account, closed))
        world.run(10 * MINUTE)
        assert not runs_of(world, task_id)
        take_over(world)
        until(world, lambda: runs_of(world, task_id))
        assert runs_of(world, task_id) == [(SECOND_REGION, FENCES_PER_EPOCH + 1)]


def _save(account: RegionalAccount, region: ActiveRegion) -> None:
    account.dynamodb.put_item(
        TableName="tasks",
        Item={
            "p": {"S": "region"},
            "s": {"S": "active"},
            "n": {"S": region.name},
            "e": {"N": str(region.epoch)},
            "a": {"N": str(region.since)},
            "o": {"BOOL": region.is_open},
        },
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_tasks_are_lost_or_repeated_only_as_the_decision_permits(seed: int) -> None:
    """In random histories and situations, tasks are lost or run twice only if the decision's table permits this."""
    outcome = in_two_regions(seed)
    assert not outcome.crash
    assert not outcome.violations
