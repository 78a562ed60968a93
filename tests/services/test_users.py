from __future__ import annotations

import random
from typing import TYPE_CHECKING

import pytest

from duetime.domain.errors import FieldInvalid, KeyReused, StateConflict, TaskNotFound, VersionMismatch
from duetime.domain.limits import MAX_DUE_AHEAD
from duetime.domain.tasks.creation import TaskChange
from duetime.domain.tasks.filters import TaskFilter
from duetime.domain.tasks.states import Move, State
from duetime.domain.tasks.task import HttpTarget, Phase, PullTarget, Task, TaskSpec
from duetime.domain.times import DAY, HOUR, MINUTE, SECOND
from duetime.ports.tasks import ListQuery
from duetime.services.tasks.create import IdempotencyKey, Order
from tests.virtual.world import OWNER, START, World

if TYPE_CHECKING:
    from duetime.domain.conditional_writes import Write
    from duetime.domain.tasks.attempt_outcomes import Ending
    from duetime.ports.targets import Work


def test_a_cancelled_task_does_not_run() -> None:
    """A cancel that was acknowledged before the claim wins, even when the message is under way."""
    world = World()
    task = world.create(TaskSpec("report", delay=2 * SECOND))
    world.pass_time(1_900)
    cancelled = world.task_updater.cancel(OWNER, task.id, None)
    world.pass_time(5 * MINUTE)
    assert (cancelled.state, cancelled.finished_at) == (State.CANCELLED, START + 1_900)
    assert cancelled.expires_at is not None
    assert not world.effects


def test_cancelling_again_changes_nothing() -> None:
    """The second answer is the first one's record."""
    world = World()
    task = world.create(TaskSpec("report", delay=MINUTE))
    assert world.task_updater.cancel(OWNER, task.id, None) == world.task_updater.cancel(OWNER, task.id, None)


def test_a_running_task_can_be_neither_changed_nor_cancelled() -> None:
    """Once claimed, the answer says which state it is in, and nothing changes."""
    world = World()
    world.behave = lambda _work: world.take(MINUTE)
    task = world.create(TaskSpec("report", timeout_seconds=100))
    world.pass_time(SECOND)
    before = world.get(task)
    with pytest.raises(StateConflict, match="running"):
        world.task_updater.cancel(OWNER, task.id, None)
    with pytest.raises(StateConflict, match="running"):
        world.task_updater.change(OWNER, task.id, TaskChange({"name": "x"}), None)
    assert world.get(task) == before


def test_another_owners_task_does_not_exist() -> None:
    """Reading, changing and cancelling it all say that there is none."""
    world = World()
    task = world.create(TaskSpec("report", delay=MINUTE))
    with pytest.raises(TaskNotFound):
        world.task_reader.get("you", task.id)
    with pytest.raises(TaskNotFound):
        world.task_updater.cancel("you", task.id, None)
    with pytest.raises(TaskNotFound):
        world.task_updater.change("you", task.id, TaskChange({"name": "x"}), None)
    assert world.get(task).version == 1


def test_a_change_for_another_version_is_refused() -> None:
    """Whoever saw an older record is told, and nothing changes."""
    world = World()
    task = world.create(TaskSpec("report", delay=MINUTE))
    changed = world.task_updater.change(OWNER, task.id, TaskChange({"name": "one"}), 1)
    assert (changed.version, changed.name, changed.generation) == (2, "one", 0)
    with pytest.raises(VersionMismatch):
        world.task_updater.change(OWNER, task.id, TaskChange({"name": "two"}), 1)
    with pytest.raises(VersionMismatch):
        world.task_updater.cancel(OWNER, task.id, 1)
    assert world.get(task).name == "one"


def test_a_change_too_far_ahead_is_refused() -> None:
    """The limit of ten years holds for changes too."""
    world = World()
    task = world.create(TaskSpec("report", delay=MINUTE))
    with pytest.raises(FieldInvalid, match="at:"):
        world.task_updater.change(OWNER, task.id, TaskChange({}, due_at=START + MAX_DUE_AHEAD + DAY), None)


def test_a_change_that_is_refused_leaves_nothing_behind() -> None:
    """Its payload would lie outside the record for ever: no record names it, and nothing lets it expire."""
    world = World()
    task = world.create(TaskSpec("report", delay=MINUTE))
    payload = b'"' + random.Random(1).randbytes(3000).hex().encode() + b'"'  # noqa: S311 - the same bytes in every run
    for change in (
        TaskChange({}, delay=MAX_DUE_AHEAD + DAY, payload=payload),
        TaskChange({"target": PullTarget()}, payload=payload),
    ):
        with pytest.raises(FieldInvalid):
            world.task_updater.change(OWNER, task.id, change, None)
    assert (world.get(task).version, world.contents._kept) == (1, {})


def test_a_rollback_is_wanted_only_of_an_endpoint_that_offers_it() -> None:
    """As at its creation: whether the rollback is new or the endpoint is, the field is named."""
    world = World()
    unable, able = HttpTarget("https://example.org/"), HttpTarget("https://example.org/", frozenset({Phase.ROLLBACK}))
    task = world.create(TaskSpec("report", delay=MINUTE, target=unable))
    with pytest.raises(FieldInvalid, match="rollback"):
        world.task_updater.change(OWNER, task.id, TaskChange({"rollback": True}), None)
    world.task_updater.change(OWNER, task.id, TaskChange({"rollback": True, "target": able}), None)
    with pytest.raises(FieldInvalid, match="rollback"):
        world.task_updater.change(OWNER, task.id, TaskChange({"target": unable}), None)
    assert (world.get(task).target, world.get(task).rollback) == (able, True)


def test_a_changed_payload_reaches_the_target() -> None:
    """The attempt is given what the record holds at its claim."""
    world = World()
    seen: list[bytes] = []

    def look(work: Work) -> Ending:
        seen.append(work.payload)
        return world.take(0)

    world.behave = look
    task = world.create(TaskSpec("report", delay=2 * SECOND, payload=b"1"))
    world.task_updater.change(OWNER, task.id, TaskChange({}, payload=b"2"), None)
    world.pass_time(5 * SECOND)
    assert seen == [b"2"]


def test_of_two_payloads_the_unused_one_expires() -> None:
    """After a change the old bytes are let go, after a refused change the new ones; the task's own are kept."""
    world = World()
    old, new, late = (b'"' + random.Random(seed).randbytes(3000).hex().encode() + b'"' for seed in range(3))  # noqa: S311 - the same bytes in every run
    task = world.create(TaskSpec("report", delay=HOUR, payload=old))
    changed = world.task_updater.change(OWNER, task.id, TaskChange({}, payload=new), None)
    assert list(world.contents.expiries) == [(task.id, "payload")]
    world.tasks.before_write = lambda write: _cancel_first(world, write)
    with pytest.raises(StateConflict):
        world.task_updater.change(OWNER, task.id, TaskChange({}, payload=late), None)
    assert world.get(task).payload.data == new
    assert len(world.contents.expiries) == 3
    assert changed.payload.name in {name for _task, name in world.contents.expiries}


def _cancel_first(world: World, write: Write) -> None:
    """Cancel a task just before a change of it is written."""
    if write.move is Move.CHANGE:
        world.task_updater.cancel(OWNER, write.task_id, None)


def test_the_same_key_and_body_make_one_task() -> None:
    """A repeated request answers with the task that the first one made."""
    world = World()
    order = Order(TaskSpec("report", delay=MINUTE), IdempotencyKey("k", "hash"))
    first = world.task_creator.create(OWNER, order)
    world.pass_time(SECOND)
    assert world.task_creator.create(OWNER, order).id == first.id
    assert sum(world.states().values()) == 1


def test_the_same_key_with_another_body_is_refused() -> None:
    """The key stands for the first body only; nothing is created."""
    world = World()
    world.task_creator.create(OWNER, Order(TaskSpec("report"), IdempotencyKey("k", "one")))
    with pytest.raises(KeyReused):
        world.task_creator.create(OWNER, Order(TaskSpec("report"), IdempotencyKey("k", "two")))
    assert sum(world.states().values()) == 1


def test_keys_belong_to_their_owners_and_end_after_a_day() -> None:
    """Another owner's equal key is another key; after a day the key may be used anew."""
    world = World()
    order = Order(TaskSpec("report"), IdempotencyKey("k", "hash"))
    mine, yours = world.task_creator.create(OWNER, order), world.task_creator.create("you", order)
    world.pass_time(DAY + SECOND)
    assert len({mine.id, yours.id, world.task_creator.create(OWNER, order).id}) == 3


def test_a_batch_answers_each_order_for_itself() -> None:
    """One refusal among many: the others are accepted, and the answers keep the order."""
    world = World()
    specs = [TaskSpec("a"), TaskSpec("b", delay=MAX_DUE_AHEAD + DAY), TaskSpec("c")]
    first, refused, third = world.task_creator.create_many(OWNER, [Order(spec) for spec in specs])
    assert isinstance(first, Task)
    assert isinstance(refused, FieldInvalid)
    assert isinstance(third, Task)
    world.pass_time(SECOND)
    assert {effect.task_id for effect in world.effects} == {first.id, third.id}


def test_a_list_is_paged_to_its_end_in_order() -> None:
    """Pages of seven over thirty tasks: each task once, latest due first."""
    world = World()
    made = [world.create(TaskSpec("report", delay=DAY + index)).id for index in range(30)]
    listed, after = [], None
    while True:
        page = world.task_reader.list(ListQuery(OWNER, after, limit=7), TaskFilter())
        listed += [task.id for task in page.tasks]
        after = page.after
        if after is None:
            break
    assert listed == sorted(made, reverse=True)


def test_a_filtered_list_shows_what_matches() -> None:
    """State, type, name, tag and due range, each by itself."""
    world = World()
    world.create(TaskSpec("a", delay=DAY, name="n", tags={"team": "dba"}))
    world.create(TaskSpec("b", delay=2 * DAY))
    world.task_updater.cancel(OWNER, world.create(TaskSpec("a", delay=3 * DAY)).id, None)

    def count(wanted: TaskFilter) -> int:
        return len(world.task_reader.list(ListQuery(OWNER), wanted).tasks)

    assert count(TaskFilter(state=State.CANCELLED)) == 1
    assert count(TaskFilter(type="a")) == 2
    assert count(TaskFilter(name="n")) == 1
    assert count(TaskFilter(tags={"team": "dba"})) == 1
    assert count(TaskFilter(tags={"team": "web"})) == 0
    assert count(TaskFilter(due_from=START + 2 * DAY)) == 2
    assert count(TaskFilter(due_to=START + 2 * DAY)) == 1
    assert count(TaskFilter(state=State.FAILED)) == 0
