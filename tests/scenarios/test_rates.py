"""Rates limit how often attempts start, by priority and age, and can be combined with other conditions."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from duetime.adapters.dynamodb import schema
from duetime.domain.tasks.states import State
from duetime_testing.simulation.faults import Call
from tests.clocks import NOW
from tests.scenarios.scenario import MINUTE, PLAIN, SECOND, UNDONE
from tests.scenarios.tasks import ONCE, Tasks
from tests.simulation.account import PULLED

if TYPE_CHECKING:
    from duetime.domain.times import Millis

CRM = {"key": "crm", "limit": 2, "per_seconds": 10}
"""A rate of two starts per ten seconds, which are five seconds apart."""


def starts(tasks: Tasks) -> list[tuple[str, Millis]]:
    """All starts in order, each with its task and the seconds since the first start."""
    runs = [effect for effect in tasks.effects if effect.phase == "run"]
    return [(effect.task_id, (effect.at - runs[0].at) // SECOND) for effect in runs]


def create(tasks: Tasks, number: int, **fields: Any) -> list[str]:  # noqa: ANN401 - JSON
    """Create tasks that share the rate."""
    return [tasks.create(rate=CRM, **fields) for _ in range(number)]


def test_attempts_start_at_the_rate_and_in_order() -> None:
    """Six concurrent tasks start five seconds apart, in creation order, and waiting uses up no attempt."""
    with Tasks() as tasks:
        made = create(tasks, 6)
        tasks.run(7 * SECOND)
        waiting = tasks.record(made[4])
        assert (waiting.state, waiting.waiting_for, waiting.attempt) == (State.WAITING, "rate crm", 0)
        told = tasks.ask("GET", f"/v1/tasks/{made[4]}").body
        assert told["waiting_for"]["reason"] == "rate"
        tasks.run(MINUTE)
        assert starts(tasks) == [(name, 5 * place) for place, name in enumerate(made)]
        assert tasks.record(made[4]).rate_places == {}


def test_a_retry_waits_for_the_rate_as_a_start() -> None:
    """Retries wait for the rate like first attempts."""
    with Tasks() as tasks:
        tasks.fail(3)
        (made,) = create(tasks, 1, retry={"max_attempts": 4, "initial_seconds": 0})
        tasks.run(MINUTE)
        assert starts(tasks) == [(made, 5 * place) for place in range(4)]


def test_a_higher_priority_starts_first() -> None:
    """High-priority tasks overtake waiting low-priority tasks, which keep their order."""
    with Tasks() as tasks:
        low = create(tasks, 4, priority="low")
        tasks.run(2 * SECOND)
        high = create(tasks, 2, priority="high")
        tasks.run(2 * MINUTE)
        assert [name for name, _ in starts(tasks)] == [low[0], *high, *low[1:]]
        assert [at for _, at in starts(tasks)] == [5 * place for place in range(6)]


def test_a_task_waiting_for_its_rate_can_be_cancelled_paused_and_run() -> None:
    """A cancelled task never starts; tasks that are resumed or run at once still follow the rate."""
    with Tasks() as tasks:
        made = create(tasks, 5)
        tasks.run(2 * SECOND)
        assert tasks.cancel(made[1]).status == 200
        assert tasks.do(made[2], "pause").status == 200
        assert tasks.do(made[4], "run").status == 200
        tasks.run(MINUTE)
        assert tasks.do(made[2], "resume").status == 200
        tasks.run(MINUTE)
        assert {name for name, _ in starts(tasks)} == {made[0], made[2], made[3], made[4]}
        assert all(after - before >= 5 for before, after in pairwise(at for _, at in starts(tasks)))
        assert tasks.state(made[1]) is State.CANCELLED
        assert tasks.state(made[2]) is State.SUCCEEDED


def test_a_task_that_waits_for_its_rate_expires() -> None:
    """A task that waits for its rate fails at its expiry without using a start."""
    with Tasks() as tasks:
        made = create(tasks, 2)
        late = tasks.create(rate=CRM, expires_seconds=7)
        after = tasks.create(rate=CRM)
        tasks.run(9 * SECOND)
        assert tasks.record(late).has_expired
        tasks.run(MINUTE)
        assert [name for name, _ in starts(tasks)] == [*made, after]


def test_a_lock_is_not_held_while_its_task_waits_for_its_rate() -> None:
    """A task that waits for its rate holds no lock, and a task that waits for a lock uses no start."""
    with Tasks() as tasks:
        tasks.last(20)
        first = tasks.create(rate=CRM, lock={"key": "db"})
        tasks.run(SECOND)
        second, third = (tasks.create(rate=CRM, lock={"key": "db"}) for _ in range(2))
        other = tasks.create(rate=CRM)
        tasks.run(3 * MINUTE)
        assert [name for name, _ in starts(tasks)] == [first, other, second, third]


def test_a_task_waiting_for_its_rate_can_be_replaced_by_unique_key() -> None:
    """A task that waits for its rate has not started, so a task with its unique key can replace it."""
    with Tasks() as tasks:
        (first,) = create(tasks, 1)
        unique = {"key": "k", "until": "started", "on_conflict": "replace"}
        waiting = tasks.create(rate=CRM, unique=unique)
        tasks.run(2 * SECOND)
        again = tasks.ask("POST", "/v1/tasks", {"type": PLAIN, "rate": CRM, "unique": unique, "payload": 2})
        assert (again.status, again.body["id"]) == (200, waiting)
        tasks.run(MINUTE)
        assert [name for name, _ in starts(tasks)] == [first, waiting]


def test_an_occurrence_that_waits_for_its_rate_counts_as_active() -> None:
    """An occurrence that waits for its rate counts as active for the overlap policy."""
    with Tasks() as tasks:
        schedule = {"name": "often", "rate": "rate(10 seconds)", "overlap": "skip"}
        rate = {"key": "crm", "limit": 1, "per_seconds": 60}
        made = tasks.ask("POST", "/v1/schedules", {**schedule, "task": {"type": PLAIN, "rate": rate}})
        assert made.status == 201, made.body
        tasks.run(5 * MINUTE)
        assert 4 <= len(starts(tasks)) <= 6
        assert tasks.tally()[State.CANCELLED] >= 10


def test_pull_workers_lease_at_the_rate() -> None:
    """A lease counts as a start, so no more tasks are leased than the rate allows."""
    with Tasks() as tasks:
        (first,) = create(tasks, 1)
        tasks.run(SECOND)
        pulled = create(tasks, 2, kind=PULLED)
        leased = []
        wanted = {"types": [PULLED], "lease_seconds": 60, "worker": "X", "wait_seconds": 4, "max_tasks": 5}
        while tasks.now < NOW + 20 * SECOND:
            leases = tasks.ask("POST", "/v1/leases", wanted).body["leases"]
            leased += [(lease["task"]["id"], tasks.now) for lease in leases]
        assert {name for name, _ in leased} == set(pulled)
        began = [*tasks.effect_times(first), *(at for _, at in leased)]
        assert all(5 * SECOND < after - before < 10 * SECOND for before, after in pairwise(began))


def test_a_throttled_rate_item_uses_up_no_attempt() -> None:
    """While a rate's item is throttled, the task is put back for a few seconds and uses up no attempt."""
    with Tasks() as tasks:
        refused = tasks.once(lambda call: (call.partition or "").startswith(schema.RATE_PREFIX), Call.refuse)
        (made,) = create(tasks, 1, retry=ONCE)
        tasks.run(MINUTE)
        assert refused
        assert tasks.outcomes(made) == ["succeeded"]


def test_a_start_that_was_granted_too_long_ago_is_not_used() -> None:
    """A process that stalls until its grant is too old asks again, so the starts keep their distance."""
    with Tasks() as tasks:
        stalled = tasks.slow(lambda call: (call.partition or "").startswith(schema.RATE_PREFIX), 3 * SECOND)
        made = create(tasks, 1)
        assert tasks.run_until(lambda: tasks.effects)
        made += create(tasks, 2)
        tasks.run(MINUTE)
        assert stalled
        assert len(starts(tasks)) == len(made)
        assert all(after - before >= 5 for before, after in pairwise(at for _, at in starts(tasks)))


def test_a_grant_whose_response_is_late_does_not_add_a_start_to_a_window() -> None:
    """If a grant's response is late, the attempt asks again, so that no window has too many starts."""
    with Tasks() as tasks:

        def delay(call: Call) -> None:
            if (call.partition or "").startswith(schema.RATE_PREFIX):
                tasks.after_call = None
                tasks.take(8 * SECOND)

        tasks.after_call = delay
        create(tasks, 4)
        tasks.run(2 * MINUTE)
        assert tasks.after_call is None
        times = [effect.at for effect in tasks.effects if effect.phase == "run"]
        assert len(times) == 4
        assert all(third - first >= 10 * SECOND for first, third in zip(times, times[2:], strict=False))


def test_a_start_costs_one_write_and_a_wait_three_more() -> None:
    """A start costs one write; a wait costs three more: the place in line, putting the task back, and the claim."""
    spent: Counter[str] = Counter()

    def count(call: Call) -> None:
        is_write = call.operation in {"put_item", "update_item", "delete_item"}
        if is_write and not (call.partition or "").startswith((schema.CURSOR_PREFIX, schema.SUMMARY_PREFIX)):
            spent[str(call.partition)[:2]] += 1

    with Tasks() as tasks:
        tasks.before_call = count
        tasks.create()
        tasks.run(5 * SECOND)
        assert spent.total() == 3
        spent.clear()
        create(tasks, 1)
        tasks.run(SECOND)
        assert spent.total() == 4
        spent.clear()
        (made,) = create(tasks, 1)
        tasks.run(10 * SECOND)
        assert tasks.state(made) is State.SUCCEEDED
        assert (spent.total(), spent[schema.RATE_PREFIX]) == (7, 2)


def test_a_switch_limits_the_rate_of_a_type() -> None:
    """A switch limits all tasks of a type, and tasks with their own rate follow both rates."""
    with Tasks() as tasks:
        body = {"rate": {"limit": 3, "per_seconds": 9}}
        assert tasks.ask("PUT", f"/v1/switches/type/{PLAIN}", body).body["rate"]["burst"] == 0
        tasks.run(10 * SECOND)
        plain = [tasks.create() for _ in range(4)]
        (own,) = create(tasks, 1)
        other = tasks.create(kind=UNDONE)
        tasks.run(2 * SECOND)
        assert tasks.state(other) is State.SUCCEEDED
        assert tasks.record(plain[3]).waiting_for == f"rate type/{PLAIN}"
        told = tasks.ask("GET", f"/v1/tasks/{plain[3]}/explain").body["gates"]
        (gate,) = [gate for gate in told if gate["state"] == "waiting"]
        assert gate["text"].startswith(f"It waits in line for the rate type/{PLAIN} (3 per 9 s), which a switch sets.")
        tasks.run(MINUTE)
        ended = [tasks.effect_times(name)[0] for name in (*plain, own)]
        assert all(3 * SECOND <= after - before <= 4 * SECOND for before, after in pairwise(sorted(ended)))


def test_a_task_starts_when_both_of_its_rates_allow_it() -> None:
    """A task with its own rate and its type's rate starts when both rates allow it."""
    with Tasks() as tasks:
        assert tasks.ask("PUT", f"/v1/switches/type/{PLAIN}", {"rate": {"limit": 1, "per_seconds": 4}}).status == 200
        tasks.run(10 * SECOND)
        made = [*create(tasks, 4), *(tasks.create() for _ in range(4))]
        tasks.run(3 * MINUTE)
        began = [at for _, at in starts(tasks)]
        assert len(began) == len(made)
        assert all(after - before >= 4 for before, after in pairwise(began))
        mine = [tasks.effect_times(name)[0] for name in made[:4]]
        assert all(after - before >= 5 * SECOND for before, after in pairwise(sorted(mine)))


def test_the_explanation_names_the_rate_that_a_task_waits_for() -> None:
    """The explanation for a task that waits names its rate as the gate, with the rate's limit."""
    with Tasks() as tasks:
        made = create(tasks, 3)
        tasks.run(2 * SECOND)
        told = tasks.ask("GET", f"/v1/tasks/{made[2]}/explain").body
        (gate,) = [gate for gate in told["gates"] if gate["state"] == "waiting"]
        assert gate["name"] == "rate"
        assert gate["text"].startswith("It waits in line for the rate crm (2 per 10 s).")
        tasks.run(MINUTE)
        after = tasks.ask("GET", f"/v1/tasks/{made[2]}/explain").body
        assert "rate" in {gate["name"] for gate in after["gates"]}


def window(tasks: Tasks, seconds: int, names: set[str] | None = None) -> int:
    """The largest number of starts, for all tasks or the named ones, in any window of this many seconds."""
    runs = sorted(effect.at for effect in tasks.effects if names is None or effect.task_id in names)
    return max((sum(1 for other in runs if at <= other < at + seconds * SECOND) for at in runs), default=0)


SLOW, FAST = {"key": "crm", "limit": 1, "per_seconds": 600}, {"key": "crm", "limit": 60, "per_seconds": 60}


@pytest.mark.parametrize("after", [FAST, None], ids=["raised", "removed"])
def test_waiting_tasks_start_at_a_raised_or_removed_rate(after: dict[str, Any] | None) -> None:
    """Waiting tasks whose rate is changed start at the new rate, which is not exceeded in any window."""
    with Tasks() as tasks:
        made = [tasks.create(rate=SLOW) for _ in range(10)]
        tasks.run(5 * SECOND)
        assert len(tasks.effects) == 1
        wanted = {"filter": {"type": PLAIN}, "update": {"rate": after}}
        assert tasks.ask("POST", "/v1/tasks/update", wanted).status < 300
        tasks.run(MINUTE if after else 5 * SECOND)
        assert {name for name, _ in starts(tasks)} == set(made)
        assert after is None or window(tasks, 1) <= 2
        assert after is None or window(tasks, 60) <= 60


def test_a_long_line_of_tasks_starts_at_the_raised_rate() -> None:
    """After the rate is tripled, forty waiting tasks start at the new rate, despite places at the old rate."""
    with Tasks() as tasks:
        slow, fast = {"key": "k", "limit": 1, "per_seconds": 10}, {"key": "k", "limit": 3, "per_seconds": 10}
        made = [tasks.create(rate=slow) for _ in range(40)]
        tasks.run(5 * SECOND)
        assert tasks.ask("POST", "/v1/tasks/update", {"filter": {"type": PLAIN}, "update": {"rate": fast}}).status < 300
        began = tasks.now
        tasks.run(5 * MINUTE)
        assert {name for name, _ in starts(tasks)} == set(made)
        # The last task starts after 39 intervals, with a tolerance of a twentieth.
        assert max(each.at for each in tasks.effects) - began < 150 * SECOND
        assert window(tasks, 10) <= 3


def test_a_lowered_rate_applies_from_the_change_on() -> None:
    """After the rate is lowered, only one waiting task starts in each window."""
    with Tasks() as tasks:
        fast, slow = {"key": "k", "limit": 1, "per_seconds": 5}, {"key": "k", "limit": 1, "per_seconds": 60}
        made = [tasks.create(rate=fast) for _ in range(6)]
        tasks.run(7 * SECOND)
        assert tasks.ask("POST", "/v1/tasks/update", {"filter": {"type": PLAIN}, "update": {"rate": slow}}).status < 300
        before = {name for name, _ in starts(tasks)}
        tasks.run(10 * MINUTE)
        assert {name for name, _ in starts(tasks)} == set(made)
        assert window(tasks, 60, set(made) - before) == 1


def test_the_larger_of_two_limits_applies_to_all_tasks_of_a_key() -> None:
    """If tasks with the same key have different limits, all of them start at the larger limit."""
    with Tasks() as tasks:
        made = [tasks.create(rate=rate) for rate in 5 * [SLOW, FAST]]
        tasks.run(15 * SECOND)
        assert {name for name, _ in starts(tasks)} == set(made)
        assert window(tasks, 1) <= 2


def test_a_resume_right_after_a_pause_of_a_rate_succeeds() -> None:
    """A resume right after a pause succeeds, because the rate's items are read consistently."""
    reads: list[bool] = []

    def note(call: Call) -> None:
        if call.operation == "batch_get_item":
            reads.extend(asked["ConsistentRead"] for asked in call.request["RequestItems"].values())

    with Tasks() as tasks:
        tasks.before_call = note
        for action in ("pause", "resume"):
            assert tasks.ask("POST", f"/v1/rates/k/{action}").status == 200
        assert reads
        assert all(reads)


@pytest.mark.parametrize("free", ["resume", "run", "due"])
def test_a_task_that_leaves_its_line_gets_a_new_place(free: str) -> None:
    """A waiting task that is run, changed or resumed gets a new place at the raised rate."""
    with Tasks() as tasks:
        _, waiting, other = (tasks.create(rate=SLOW) for _ in range(3))
        tasks.run(5 * SECOND)
        assert tasks.change(other, rate=FAST).status == 200
        tasks.run(9 * SECOND)
        assert tasks.state(other) is State.SUCCEEDED
        assert tasks.change(waiting, rate=FAST, due_at="2026-11-22T00:00:00Z").status == 200
        if free == "due":
            assert tasks.change(waiting, delay_seconds=1).status == 200
        elif free == "run":
            assert tasks.do(waiting, "run").status == 200
        else:
            assert tasks.do(waiting, "pause").status == 200
            assert tasks.change(waiting, delay_seconds=0).status == 200
            assert tasks.do(waiting, "resume").status == 200
        tasks.run(9 * SECOND)
        assert tasks.state(waiting) is State.SUCCEEDED


@pytest.mark.parametrize(("own", "switch"), [(1, 2), (1, 1), (2, 1), (3, 2)])
def test_two_rates_hardly_reduce_the_throughput(own: int, switch: int) -> None:
    """Tasks with two rates start about as fast as the slower rate allows."""
    with Tasks() as tasks:
        limit = {"rate": {"limit": switch, "per_seconds": 10}}
        assert tasks.ask("PUT", f"/v1/switches/type/{PLAIN}", limit).status == 200
        tasks.run(10 * SECOND)
        began = tasks.now
        keys = [f"k{number % 2}" for number in range(20)]
        made = [tasks.create(rate={"key": key, "limit": own, "per_seconds": 10}) for key in keys]
        ideal = 20 * 10 * SECOND // min(switch, 2 * own)
        tasks.run(2 * ideal)
        assert len(tasks.effects) == 20
        assert max(each.at for each in tasks.effects) - began < 1.1 * ideal
        assert window(tasks, 10) <= switch
        for key in ("k0", "k1"):
            mine = {name for name, used in zip(made, keys, strict=True) if used == key}
            assert window(tasks, 10, mine) <= own


def test_a_start_granted_by_one_of_two_rates_exceeds_neither_rate() -> None:
    """A start that one rate grants while the task waits for the other rate exceeds neither rate."""
    with Tasks() as tasks:
        limit = {"rate": {"limit": 1, "per_seconds": 1}}
        assert tasks.ask("PUT", f"/v1/switches/type/{PLAIN}", limit).status == 200
        tasks.run(10 * SECOND)
        plain = [tasks.create() for _ in range(2)]
        mine = [tasks.create(rate={"key": "k", "limit": 1, "per_seconds": 3}) for _ in range(3)]
        tasks.run(MINUTE)
        assert {name for name, _ in starts(tasks)} == {*plain, *mine}
        assert (window(tasks, 1), window(tasks, 3, set(mine))) == (1, 1)
