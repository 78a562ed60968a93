"""Tasks start at their due times, whichever component finds them, and at once after an outage of the trigger."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from duetime.domain.dispatch.cursors import GROUP_SIZE
from duetime.domain.ids import TaskId
from duetime.domain.tasks.task_options import Priority
from duetime.domain.times import to_iso
from duetime.environment_variables import Variable
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND
from tests.scenarios.tasks import Tasks

if TYPE_CHECKING:
    from duetime.domain.times import Millis
    from duetime_testing.simulation.faults import Call
    from duetime_testing.simulation.machines import Machine

NEXT_TO_NOTHING = 50
"""The maximum time that a claim takes, in milliseconds."""


@pytest.mark.parametrize("delay", [0, 300, 1 * SECOND, 90 * SECOND, 4 * MINUTE, 20 * MINUTE, 3 * HOUR])
def test_a_task_runs_at_its_due_time_and_not_before(delay: Millis) -> None:
    """Tasks due at once or in up to three hours start within 200 ms after their due time, and never earlier."""
    with Tasks() as tasks:
        task_id = tasks.create(delay)
        tasks.time.run_until(tasks.record(task_id).due_at + 2 * SECOND)
        task = tasks.done(task_id)
        (began,) = tasks.effect_times(task_id)
        assert task.due_at <= began <= task.due_at + NEXT_TO_NOTHING + (delay < SECOND) * 150
        assert (task.attempt, task.fence, task.lateness) == (1, 1, (task.started_at or 0) - task.due_at)


@pytest.mark.parametrize("years", [0, 56])
def test_the_lateness_of_a_task_due_earlier_counts_from_its_creation(years: int) -> None:
    """If a task is created with a past due time, its lateness counts from the creation, wherever it is shown."""
    with Tasks() as tasks:
        due_at = "1970-01-01T00:00:00Z" if years else to_iso(tasks.now - HOUR)
        task_id = tasks.create(due_at=due_at)
        tasks.run(SECOND)
        assert_lateness_agrees(tasks, task_id, below=SECOND)


def test_lateness_counts_from_a_change_to_a_past_due_time() -> None:
    """A task that is moved to a past due time runs at once, and its lateness counts from the change."""
    with Tasks() as tasks:
        task_id = tasks.create(24 * HOUR)
        tasks.run(HOUR)
        assert tasks.change(task_id, due_at="1970-01-01T00:00:00Z").status == 200
        tasks.run(SECOND)
        assert_lateness_agrees(tasks, task_id, below=SECOND)


def test_the_lateness_of_a_paused_task_counts_from_its_resume() -> None:
    """The time that a task was paused past its due time does not count as lateness."""
    with Tasks() as tasks:
        task_id = tasks.create(HOUR)
        assert tasks.do(task_id, "pause").status == 200
        tasks.run(3 * HOUR)
        assert tasks.do(task_id, "resume").status == 200
        tasks.run(SECOND)
        assert_lateness_agrees(tasks, task_id, below=SECOND)


def assert_lateness_agrees(tasks: Tasks, task_id: str, below: Millis) -> None:
    """Check that history and metric show the same lateness, and the response at most 100 ms more."""
    assert tasks.state(task_id) == "succeeded"
    told = tasks.ask("GET", f"/v1/tasks/{task_id}").body["lateness_ms"]
    (attempt,) = tasks.ask("GET", f"/v1/tasks/{task_id}/attempts").body["attempts"]
    (measured,) = tasks.measured("lateness")
    assert attempt["lateness_ms"] == measured
    assert measured <= told < measured + 100
    assert told < below


def test_many_tasks_spread_over_minutes_all_run_once_on_time() -> None:
    """If 150 tasks are due on all queues within ten minutes, each runs once, neither early nor late."""
    with Tasks() as tasks:
        made = [
            (tasks.now + 4 * index * SECOND, tasks.create(4 * index * SECOND, priority=list(Priority)[index % 3].value))
            for index in range(150)
        ]
        tasks.run(11 * MINUTE)
        assert sorted(effect.task_id for effect in tasks.effects) == sorted(task_id for _, task_id in made)
        late = [effect.at - tasks.record(effect.task_id).due_at for effect in tasks.effects]
        assert min(late) >= 0
        assert max(late) <= NEXT_TO_NOTHING + 150


def test_a_task_beyond_the_look_ahead_is_sent_only_once() -> None:
    """A task beyond the look-ahead is sent exactly once."""
    with Tasks() as tasks:
        tasks.create(10 * MINUTE)
        tasks.run(15 * MINUTE)
        assert tasks.sent() == 1


def test_a_task_sent_by_the_api_is_not_sent_again_by_the_trigger() -> None:
    """The trigger does not send a task again if its record says that the API has sent the message."""
    with Tasks() as tasks:
        tasks.create(150 * SECOND)
        tasks.run(10 * MINUTE)
        assert tasks.sent() == 1


def test_missed_ticks_are_caught_up() -> None:
    """After twenty minutes without a trigger, all overdue tasks run at once."""
    with Tasks() as tasks:
        tasks.faulty = True
        tasks.run(MINUTE)
        made = [tasks.create((5 + minute) * MINUTE) for minute in range(10)]
        tasks.ticking = False
        tasks.run(20 * MINUTE)
        assert not tasks.effects
        tasks.ticking = True
        tasks.run(2 * MINUTE)
        assert sorted(effect.task_id for effect in tasks.effects) == sorted(made)


def test_tasks_in_later_minutes_are_on_time_after_missed_ticks() -> None:
    """After missed ticks, the next tick continues from the cursor, so tasks in later minutes are on time."""
    with Tasks() as tasks:
        made = [tasks.create((20 + minute) * MINUTE) for minute in range(5)]
        tasks.run(MINUTE)
        tasks.ticking = False
        tasks.run(18 * MINUTE)
        tasks.ticking = True
        tasks.run(7 * MINUTE)
        assert all((tasks.done(task_id).lateness or 0) < SECOND for task_id in made)


class Deployments(Tasks):
    """An account whose functions can have different numbers of shards.

    Attributes:
        known: the number of shards that new processes of each function know.
    """

    def __init__(self, shards: int) -> None:
        super().__init__()
        self.known = {"api": shards, "trigger": shards, "intake": shards}

    def deploy(self, function: str, shards: int) -> None:
        """Deploy one function with a different number of shards."""
        self.known[function] = shards
        for machine in self.machines:
            if machine.function == function:
                machine.dead = machine.strand is None or machine.dead

    def _free_machine(self, function: str) -> Machine:
        self.environ[Variable.SHARDS] = str(self.known.get(function, self.known["api"]))
        return super()._free_machine(function)


def _shard(task_id: str) -> int:
    return TaskId(task_id).shard


def test_many_shards_are_read_in_groups_by_several_invocations() -> None:
    """Forty shards are read in three groups, and tasks in all groups run."""
    with Deployments(40) as tasks:
        for index in range(60):
            tasks.create(5 * MINUTE + index)
        tasks.run(6 * MINUTE)
        assert tasks.tally() == {"succeeded": 60}
        assert {_shard(effect.task_id) // GROUP_SIZE for effect in tasks.effects} == {0, 1, 2}
        assert len({line[3]["Payload"] for line in tasks.lines if line[2] == "invoke"}) == 3


NUMBERS = [(4, 16), (16, 24), (4, 40)]


@pytest.mark.slow
@pytest.mark.parametrize(("before", "after"), NUMBERS)
@pytest.mark.parametrize("gap", [MINUTE, 15 * MINUTE])
def test_tasks_in_new_shards_run_before_the_trigger_is_redeployed(before: int, after: int, gap: Millis) -> None:
    """Tasks in new shards run on time even if the trigger is deployed later than the API."""
    with Deployments(before) as tasks:
        tasks.run(10 * MINUTE)
        tasks.deploy("api", after)
        made = [tasks.create((120 + 60 * number) * SECOND) for number in range(25)]
        tasks.run(gap)
        tasks.deploy("trigger", after)
        tasks.run(30 * MINUTE - gap)
        assert max(map(_shard, made)) >= before
        assert all((tasks.done(task_id).lateness or 0) < SECOND for task_id in made)


@pytest.mark.slow
@pytest.mark.parametrize(("after", "before"), NUMBERS)
def test_tasks_in_removed_shards_still_run_on_time(before: int, after: int) -> None:
    """After the number of shards is lowered, tasks in the removed shards still run on time."""
    with Deployments(before) as tasks:
        made = [tasks.create(10 * MINUTE) for _ in range(40)]
        tasks.deploy("api", after)
        tasks.deploy("trigger", after)
        made += [tasks.create(11 * MINUTE) for _ in range(10)]
        tasks.run(13 * MINUTE)
        assert max(map(_shard, made)) >= after
        assert all((tasks.done(task_id).lateness or 0) < SECOND for task_id in made)


@pytest.mark.parametrize("late", [30 * MINUTE, 3 * HOUR])
def test_the_first_tick_of_a_stack_runs_all_earlier_tasks(late: Millis) -> None:
    """A new stack's first tick sends all tasks that are already due, however late the tick is."""
    with Tasks() as tasks:
        tasks.faulty, tasks.ticking = True, False
        made = [tasks.create(delay * MINUTE) for delay in (1, 5, 12, 20)]
        tasks.refuse_sends()
        made.append(tasks.create())
        tasks.before_call = None
        tasks.run(late)
        tasks.ticking = True
        tasks.run(3 * MINUTE)
        assert {tasks.state(task_id) for task_id in made} == {"succeeded"}


def _writes_records(call: Call) -> bool:
    is_single = call.operation == "put_item" and (call.partition or "").startswith("20")
    return is_single or call.operation == "batch_execute_statement"


def test_a_batch_repeated_after_its_minutes_is_found_by_timers() -> None:
    """A repeated batch sets new timers, because the trigger has already read the minutes of its records."""
    with Tasks() as tasks:
        tasks.faulty = True
        body, key = {"tasks": 3 * [{"type": PLAIN}]}, {"Idempotency-Key": "batch"}
        tasks.refuse(_writes_records)
        first = tasks.ask("POST", "/v1/tasks/batch", body, headers=key)
        assert ["task" in each for each in first.body["results"]] == 3 * [False]
        tasks.before_call = None
        tasks.run(4 * MINUTE)
        tasks.refuse_sends()
        again = tasks.ask("POST", "/v1/tasks/batch", body, headers=key)
        tasks.before_call = None
        made = [each["task"]["id"] for each in again.body["results"]]
        tasks.run(10 * MINUTE)
        assert {tasks.state(task_id) for task_id in made} == {"succeeded"}


@pytest.mark.slow
def test_an_event_creates_one_task_while_the_number_of_shards_grows() -> None:
    """An event that is delivered before and after a deployment with more shards creates one task."""
    with Deployments(16) as tasks:
        origin = to_iso(tasks.now)
        for number in range(5):
            tasks.send_event(f"order-{number}", origin)
        tasks.run(MINUTE)
        first = {task.id for task in tasks.watching.tasks()}
        assert len(first) == 5
        tasks.deploy("api", 48)
        tasks.deploy("intake", 48)
        for _ in range(2):
            tasks.run(65 * MINUTE)
            for number in range(5):
                tasks.send_event(f"order-{number}", origin)
            tasks.run(MINUTE)
            assert {task.id for task in tasks.watching.tasks()} == first
        for number in range(60):
            tasks.send_event(f"later-{number}", to_iso(tasks.now))
        tasks.run(MINUTE)
        assert max(task.id.shard for task in tasks.watching.tasks()) >= 16
