"""Messages with a fair key are in the key's group, so that small keys do not wait behind a large key."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime.adapters.sqs import group_of
from duetime.domain.times import to_iso
from tests.parts import others_slow
from tests.scenarios.scenario import MINUTE, PLAIN, SECOND
from tests.scenarios.schedules import Schedules
from tests.scenarios.tasks import Tasks
from tests.scenarios.test_lock_lines import Crowd
from tests.scenarios.test_pull_workers import Pulled
from tests.simulation.account import PULLED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

OWNER, KEY = "local", "customer-17"
FAIR: dict[str, Any] = {"fair_key": KEY}


def watch_groups(tasks: Tasks) -> dict[str, list[str]]:
    """Record the groups of each task's messages from now on."""
    found: dict[str, list[str]] = {}
    send = tasks.sqs.send_message_batch

    def watched(*, QueueUrl: str, Entries: Sequence[dict[str, Any]]) -> dict[str, Any]:  # noqa: N803 - as in boto3
        for entry in Entries:
            task_id = entry["MessageBody"].removeprefix('{"i":"')[:26]
            found.setdefault(task_id, []).append(entry["MessageGroupId"])
        return send(QueueUrl=QueueUrl, Entries=Entries)

    tasks.sqs.send_message_batch = watched  # type: ignore[method-assign]
    return found


def shares(weight: int = 1, key: str = KEY) -> set[str]:
    """The groups for a key with this weight."""
    return {group_of(OWNER, f"{number}.{key}") for number in range(weight)}


def test_all_messages_of_a_task_are_in_its_fair_keys_group() -> None:
    """All messages of a task are in its key's group, or, if the task has no key, in its owner's group."""
    with Tasks() as tasks:
        tasks.faulty = True
        tasks.fail(1)
        groups = watch_groups(tasks)
        plain = tasks.create()
        now = tasks.create(**FAIR)
        later = tasks.create(10 * MINUTE, **FAIR)
        moved = tasks.create(40 * MINUTE, **FAIR)
        tasks.change(moved, due_at=to_iso(tasks.now + 12 * MINUTE))
        lost = tasks.create(5 * SECOND, **FAIR)
        tasks.lose_messages()
        tasks.run(20 * MINUTE)
        assert tasks.tally() == {"succeeded": 5}
        assert set(groups[plain]) == {OWNER}
        assert {each for task_id in (now, later, moved, lost) for each in groups[task_id]} == shares()
        assert min(len(groups[task_id]) for task_id in (now, later, moved, lost)) >= 2


def test_a_fair_key_with_weight_three_is_spread_over_three_groups() -> None:
    """The tasks of a key with weight 3 are spread over three groups."""
    with Tasks() as tasks:
        groups = watch_groups(tasks)
        for _ in range(20):
            tasks.create(**FAIR, fair_weight=3)
        tasks.run(MINUTE)
        assert {each for found in groups.values() for each in found} == shares(3)


def test_a_waiting_task_with_a_changed_key_is_sent_in_its_group() -> None:
    """A waiting task whose key changes is sent in the new key's group; `null` removes the key."""
    with Tasks() as tasks:
        groups = watch_groups(tasks)
        changed, freed, sent = (tasks.create(delay, **FAIR) for delay in (10 * MINUTE, 10 * MINUTE, 30 * SECOND))
        assert set(groups.pop(sent)) == shares()
        tasks.change(sent, fair_key="customer-18")
        assert tasks.change(changed, fair_key="customer-18", fair_weight=1).body["fair_key"] == "customer-18"
        assert "fair_key" not in tasks.change(freed, fair_key=None).body
        tasks.run(11 * MINUTE)
        assert set(groups[changed]) == set(groups[sent]) == shares(key="customer-18")
        assert set(groups[freed]) == {OWNER}


def test_a_due_task_is_sent_again_in_its_new_keys_group() -> None:
    """A due task that no worker has received is sent again in its new key's group, and runs once."""
    with Tasks() as tasks:
        groups = watch_groups(tasks)
        tasks.receiving = False
        task_id = tasks.create()
        tasks.run(2 * SECOND)
        assert groups.pop(task_id) == [OWNER]
        tasks.change(task_id, **FAIR)
        assert set(groups[task_id]) == shares()
        tasks.receive_again()
        tasks.run(MINUTE)
        assert (tasks.state(task_id), tasks.record(task_id).attempt) == ("succeeded", 1)


def test_occurrences_are_sent_in_the_group_of_the_schedules_key() -> None:
    """Each occurrence is sent in the group of the fair key in its schedule's task."""
    with Schedules() as schedules:
        groups = watch_groups(schedules)
        schedules.make(cron="* * * * *", task={"type": PLAIN, **FAIR})
        schedules.run(5 * MINUTE)
        assert {each for found in groups.values() for each in found} == shares()


def test_nodes_without_a_fair_key_use_their_topologys_key() -> None:
    """Nodes and map items use their topology's key, and callbacks use their task's key."""
    items = {"type": PLAIN, "depends_on": ["a"], "map": {"over": "parents.a.result"}}
    nodes = {"a": {"type": PLAIN}, "b": {"type": PLAIN, "fair_key": "own"}, "items": items}
    with Tasks() as tasks:
        groups = watch_groups(tasks)
        tasks.target = lambda _phase, _context: [1, 2]
        made = tasks.ask(
            "POST", "/v1/topologies", {"nodes": nodes, **FAIR, "callback_url": "https://hooks.example.org/ended"}
        )
        assert made.status == 201, made.body
        tasks.run(2 * MINUTE)
        by_name = {task.name: set(groups[task.id.text]) for task in tasks.watching.tasks()}
        assert by_name.pop("b") == shares(key="own")
        assert len(by_name) >= 6
        assert set().union(*by_name.values()) == shares()


def test_messages_of_pulled_tasks_are_in_the_keys_group() -> None:
    """A pulled task's message is in the group of the task's key."""
    with Pulled() as tasks:
        groups = watch_groups(tasks)
        task_id = tasks.create_pulled(**FAIR)
        tasks.run(2 * SECOND)
        assert set(groups[task_id]) == shares()
        assert tasks.record(task_id).type == PULLED


@pytest.mark.parametrize(("key", "longest"), others_slow([(FAIR, 3), ({}, 60)]), ids=["with keys", "without"])
def test_tasks_of_other_fair_keys_hardly_wait_behind_a_large_key(key: Mapping[str, str], longest: float) -> None:
    """Ten tasks with other keys hardly wait behind 600 tasks with one key; without keys, the ten wait over 10 s."""
    with Tasks() as tasks:
        tasks.faulty = True
        tasks.sqs.pick = lambda messages: messages
        tasks.most_workers = 5
        tasks.last(2)
        for _ in range(6):
            body = {"type": PLAIN, "delay_seconds": 10, **key}
            assert tasks.ask("POST", "/v1/tasks/batch", {"tasks": [body] * 100}).status == 200
        small = [tasks.create(20 * SECOND, **({"fair_key": f"small-{number}"} if key else {})) for number in range(10)]
        tasks.run(5 * MINUTE)
        assert tasks.tally() == {"succeeded": 610}
        late = [tasks.record(task_id).lateness or 0 for task_id in small]
        if key:
            assert max(late) <= longest * SECOND
        else:
            assert min(late) > 10 * SECOND


WRITES = {"put_item", "update_item", "delete_item"}


def test_a_shared_lock_limits_concurrent_tasks_of_a_fair_key() -> None:
    """Tasks of other keys do not wait for one key's shared lock, and the average task takes at most 15 writes."""
    with Crowd(5) as tasks:
        lock = {"key": KEY, "mode": "shared", "max_holders": 4}
        body = {"type": PLAIN, "delay_seconds": 10, **FAIR, "lock": lock}
        assert tasks.ask("POST", "/v1/tasks/batch", {"tasks": [body] * 40}).status == 200
        calls: list[str] = []
        tasks.before_call = lambda call: calls.append(call.operation)
        tasks.run(20 * SECOND)
        assert tasks.most == 4
        other = tasks.create(fair_key="small")
        tasks.run(MINUTE)
        assert (tasks.record(other).lateness or 0) < 2 * SECOND
        assert tasks.tally() == {"succeeded": 41}
        assert tasks.most == 5
        assert sum(each in WRITES for each in calls) <= 15 * 41
