"""Limits on a schedule's runs count only runs that begin, whatever keeps other occurrences from running."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from duetime.adapters.dynamodb import schema
from duetime.adapters.dynamodb.schedule_items import ACTIVITY
from duetime.domain.times import to_iso
from duetime.handlers import Unretriable
from tests.parts import others_slow
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND
from tests.scenarios.schedules import Schedules

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.domain.times import Millis
    from duetime_testing.simulation.faults import Call

STOP = "/v1/switches/all/all"
NUMBER = 5
"""The number of runs that may begin."""
LATEST = HOUR
"""The time by which each of these schedules has ended."""


@dataclass(frozen=True)
class Way:
    """A reason that keeps occurrences from running.

    Attributes:
        fields: fields of the schedule, which runs once a minute unless these fields have another timing.
        lasts: how long each run lasts, in seconds.
        act: a function that is called while the schedule runs.
    """

    fields: dict[str, Any] = field(default_factory=dict)
    lasts: int = 1
    act: Callable[[Schedules], None] = lambda schedules: schedules.run(2 * MINUTE)


def _ahead(schedules: Schedules) -> list[Any]:
    """The placed tasks that are not due yet."""
    return [task for task in schedules.placed() if task.due_at > schedules.now and not task.is_terminal]


def _excluded_for_minutes(schedules: Schedules) -> None:
    start = schedules.now + MINUTE
    spans = [{"start": to_iso(start), "end": to_iso(start + 3 * MINUTE)}]
    assert schedules.ask("PUT", "/v1/calendars/off", {"spans": spans}).status in {200, 201}


def _skip_two(schedules: Schedules) -> None:
    schedules.run(MINUTE)
    for task in _ahead(schedules)[:2]:
        body = {"scheduled_at": to_iso(task.schedule_ref.nominal), "action": "skip"}
        assert schedules.control("occurrences/update", body).status == 200


def _pause(schedules: Schedules) -> None:
    schedules.run(90 * SECOND)
    assert schedules.control("pause").status == 200
    schedules.run(4 * MINUTE)
    assert schedules.control("resume").status == 200


def _pause_while_one_waits(schedules: Schedules) -> None:
    assert schedules.run_until(lambda: "waiting" in schedules.tally(), 5 * MINUTE, SECOND)
    assert schedules.control("pause").status == 200
    schedules.run(4 * MINUTE)
    assert schedules.control("resume").status == 200


def _outage(schedules: Schedules) -> None:
    schedules.run(90 * SECOND)
    schedules.ticking = False
    schedules.run(10 * MINUTE)
    schedules.ticking = True


def _switch(schedules: Schedules) -> None:
    schedules.run(90 * SECOND)
    assert schedules.ask("PUT", STOP, {"stopped": True}).status == 200
    schedules.run(4 * MINUTE)
    assert schedules.ask("DELETE", STOP).status == 200


def _cancel_two(schedules: Schedules) -> None:
    schedules.run(MINUTE)
    for task in _ahead(schedules)[:2]:
        assert schedules.cancel(task.id.text).status == 200


def _delete_two(schedules: Schedules) -> None:
    schedules.run(MINUTE)
    for task in _ahead(schedules)[:2]:
        assert schedules.cancel(task.id.text).status == 200
        assert schedules.ask("DELETE", f"/v1/tasks/{task.id}").status == 204


def _cancel_all_that_are_placed(schedules: Schedules) -> None:
    schedules.run(3 * MINUTE)
    for task in _ahead(schedules):
        assert schedules.cancel(task.id.text).status == 200


def _hold_two(schedules: Schedules) -> None:
    schedules.run(MINUTE)
    held = [task.id.text for task in _ahead(schedules)[:2]]
    for task_id in held:
        assert schedules.do(task_id, "pause").status == 200
    schedules.run(20 * MINUTE)
    for task_id in held:
        assert schedules.do(task_id, "resume").status == 200


def _run_early(schedules: Schedules) -> None:
    schedules.run(MINUTE)
    assert schedules.do(_ahead(schedules)[1].id.text, "run").status in {200, 202}


def _change(**fields: Any) -> Callable[[Schedules], None]:  # noqa: ANN401 - JSON
    def change(schedules: Schedules) -> None:
        schedules.run(90 * SECOND)
        assert schedules.amend(**fields).status == 200

    return change


def _run_by_hand(schedules: Schedules) -> None:
    for _ in range(3):
        schedules.run(30 * SECOND)
        assert schedules.control("run").status in {200, 201}


def _fill_back(schedules: Schedules) -> None:
    start = schedules.now // HOUR * HOUR - 3 * HOUR
    body = {"scheduled_after": to_iso(start), "scheduled_before": to_iso(start + 4 * MINUTE), "overlap": "buffer_all"}
    assert schedules.control("backfills", body).status == 201


def _cancel_what_waits_for_a_lock(schedules: Schedules) -> None:
    schedules.create(0, lock={"key": "one"}, timeout_seconds=600)
    for seconds in (95, 85):
        schedules.run(seconds * SECOND)
        for task in [task for task in schedules.placed() if task.state == "waiting"]:
            assert schedules.cancel(task.id.text).status == 200


LOCKED = {"type": PLAIN, "timeout_seconds": 600, "lock": {"key": "one"}}
WAYS = {
    "cancelled while they wait for a lock": Way(
        {"overlap": "skip", "task": LOCKED}, 100, _cancel_what_waits_for_a_lock
    ),
    "replaced while they wait for a lock": Way(
        {"overlap": "cancel_other", "task": LOCKED}, 100, _cancel_what_waits_for_a_lock
    ),
    "cancelled while all wait for a lock": Way(
        {"overlap": "allow_all", "task": LOCKED}, 100, _cancel_what_waits_for_a_lock
    ),
    "nothing": Way(),
    "overlap: skip": Way({"overlap": "skip"}, 150),
    "overlap: buffer_one": Way({"overlap": "buffer_one"}, 150),
    "overlap: buffer_all": Way({"overlap": "buffer_all"}, 100),
    "overlap: cancel_other": Way({"overlap": "cancel_other"}, 150),
    "overlap: replace_other": Way({"overlap": "replace_other"}, 150),
    "overlap: allow_all": Way({"overlap": "allow_all"}, 150),
    "overlap of a frequent one": Way({"rate": "10 seconds", "overlap": "skip"}, 25),
    "calendar": Way({"calendars": ["off"]}, act=_excluded_for_minutes),
    "calendar that moves": Way({"calendars": ["off"], "on_excluded": "move"}, act=_excluded_for_minutes),
    "occurrences skipped by the user": Way(act=_skip_two),
    "pause": Way(act=_pause),
    "pause while one waits": Way({"overlap": "buffer_one"}, 90, _pause_while_one_waits),
    "outage": Way(act=_outage),
    "outage, all caught up": Way({"catch_up_mode": "all"}, act=_outage),
    "outage, none caught up": Way({"catch_up_seconds": 0}, act=_outage),
    "switch": Way(act=_switch),
    "switch, all at once": Way({"overlap": "allow_all"}, act=_switch),
    "expiry before the start": Way(
        {"task": {"type": PLAIN, "timeout_seconds": 600, "expires_seconds": 30}}, act=_switch
    ),
    "tasks cancelled": Way(act=_cancel_two),
    "tasks cancelled and deleted": Way({"overlap": "allow_all"}, act=_delete_two),
    "all tasks ahead cancelled": Way(act=_cancel_all_that_are_placed),
    "tasks held": Way({"overlap": "allow_all"}, act=_hold_two),
    "a task run early": Way({"overlap": "allow_all"}, act=_run_early),
    "change of the timing": Way(act=_change(cron="*/2 * * * *")),
    "change of the task": Way(act=_change(catch_up_seconds=60)),
    "change of the overlap": Way({"overlap": "allow_all"}, 100, _change(overlap="skip")),
    "runs by hand": Way(lasts=20, act=_run_by_hand),
    "backfill": Way(lasts=20, act=_fill_back),
    "permanent": Way({"permanent": {"gap_seconds": 40}}, 20),
    "permanent, runs by hand": Way({"permanent": {"gap_seconds": 40}}, 20, _run_by_hand),
    "permanent, tasks cancelled": Way({"permanent": {"gap_seconds": 40}}, 20, _cancel_all_that_are_placed),
    "permanent, pause": Way({"permanent": {"gap_seconds": 40}}, 20, _pause),
}


HELD_BY_LOCKS = {way for way in WAYS if "wait for a lock" in way}
"""These runs count toward the limit until it is known that waiting for the lock has kept them from starting."""
OF_SEVERAL = {"pause while one waits", "a task run early", "backfill"}
"""Ways to keep occurrences from running that need several runs or past times."""


def _is_count(call: Call) -> bool:
    """Whether a call stores which runs of the schedule have begun."""
    item = call.request.get("Item") or {}
    return call.operation == "put_item" and item.get(schema.SORT_KEY) == {"S": ACTIVITY}


def begun(schedules: Schedules) -> dict[Millis, int]:
    """How often each regular run that has begun called its target, by nominal time."""
    by_timing = {
        task.schedule_ref.nominal for task in schedules.placed() if task.schedule_ref and task.schedule_ref.is_by_timing
    }
    return {at: number for at, number in schedules.ran().items() if at in by_timing}


def happen(schedules: Schedules, way: Way, **fields: Any) -> None:  # noqa: ANN401 - JSON
    """Create the schedule with a limit, and use this way to keep occurrences from running."""
    if "calendars" in way.fields:
        assert schedules.ask("PUT", "/v1/calendars/off", {"dates": ["2030-12-25"]}).status in {200, 201}
    schedules.make(**way.fields, **fields)
    way.act(schedules)


QUICK = [
    "overlap: skip",
    "overlap: buffer_one",
    "overlap: cancel_other",
    "overlap of a frequent one",
    "pause",
    "tasks cancelled",
]
"""Ways to keep occurrences from running that each commit tests; the slow tests have the other ways."""


@pytest.mark.parametrize("way", [way if way in QUICK else pytest.param(way, marks=pytest.mark.slow) for way in WAYS])
def test_exactly_as_many_runs_begin_as_the_limit_allows(way: str) -> None:
    """Exactly as many runs begin as the limit allows, the schedule ends, and `remaining_runs` is always correct."""
    with Schedules() as schedules:
        schedules.last(WAYS[way].lasts)
        happen(schedules, WAYS[way], remaining_runs=NUMBER)
        end = schedules.now + LATEST
        while schedules.now < end and schedules.schedule()["state"] != "ended":
            schedules.run(MINUTE)
            if way not in HELD_BY_LOCKS:
                assert schedules.schedule()["remaining_runs"] == NUMBER - len(begun(schedules))
        assert schedules.schedule()["state"] == "ended"
        schedules.run(5 * MINUTE)
        assert len(begun(schedules)) == NUMBER
        assert set(begun(schedules).values()) == {1}


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_no_run_begins_for_a_time_after_end_at(way: str) -> None:
    """If `end_at` comes before all runs are used up, no run begins for a later time, and runs are left over."""
    with Schedules() as schedules:
        end = schedules.now + 7 * MINUTE
        schedules.last(WAYS[way].lasts)
        happen(schedules, WAYS[way], remaining_runs=1000, end_at=to_iso(end))
        schedules.run(30 * MINUTE)
        shown = schedules.schedule()
        assert max(begun(schedules)) <= end
        assert shown["state"] == "ended"
        if way not in HELD_BY_LOCKS:
            assert shown["remaining_runs"] == 1000 - len(begun(schedules))


@pytest.mark.slow
@pytest.mark.parametrize("way", [way for way in WAYS if way not in OF_SEVERAL])
def test_only_the_allowed_run_between_start_at_and_end_at_begins(way: str) -> None:
    """If one run is allowed between `start_at` and `end_at`, exactly one run begins, and not before `start_at`."""
    with Schedules() as schedules:
        start = schedules.now + 3 * MINUTE
        schedules.last(WAYS[way].lasts)
        happen(schedules, WAYS[way], remaining_runs=1, start_at=to_iso(start), end_at=to_iso(schedules.now + HOUR))
        schedules.run(40 * MINUTE)
        assert len(begun(schedules)) == 1
        assert min(begun(schedules)) >= start
        assert schedules.schedule()["state"] == "ended"


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
def test_a_failure_pauses_before_the_runs_are_used_up(way: str) -> None:
    """If a schedule pauses after the third failure, the remaining runs are still available after a resume."""
    with Schedules() as schedules:
        fields = WAYS[way].fields

        def behave(_phase: str, _context: object) -> str:
            schedules.take(WAYS[way].lasts * SECOND)
            if len(begun(schedules)) >= 3:
                raise Unretriable
            return "done"

        schedules.target = behave
        happen(schedules, WAYS[way], remaining_runs=NUMBER, pause_on_failure=True)
        schedules.run_until(lambda: schedules.schedule()["state"] != "active", 40 * MINUTE, 10 * SECOND)
        paused = schedules.schedule()
        if paused["state"] == "ended":
            # Concurrent runs can all begin before the first run fails.
            assert fields.get("overlap") in {"allow_all", "replace_other", "cancel_other"}
            return
        number = len(begun(schedules))
        schedules.run(20 * MINUTE)
        assert len(begun(schedules)) == number
        if way not in HELD_BY_LOCKS:
            assert schedules.schedule()["remaining_runs"] == NUMBER - number
        schedules.target = lambda _phase, _context: "done"
        assert schedules.control("resume").status == 200
        schedules.run(40 * MINUTE)
        assert len(begun(schedules)) == NUMBER


@pytest.mark.parametrize("overlap", others_slow(["skip", "buffer_one", "allow_all"]))
@pytest.mark.parametrize("is_counted", [False, True])
def test_a_run_counts_once_even_if_its_worker_dies(overlap: str, is_counted: bool) -> None:  # noqa: FBT001 - a test parameter
    """If a worker dies before or after counting a run, exactly the allowed number of runs still begins."""
    with Schedules() as schedules:
        schedules.last(100)
        died: list[str] = []

        def die(call: Call) -> None:
            if is_counted and not died and call.machine.function == "worker" and _is_count(call):
                # The worker completes this write, and then dies.
                schedules.once(lambda later: later.machine is call.machine, lambda later: later.machine.die())
                died.append(call.operation)

        if is_counted:
            schedules.before_call = die
        else:

            def die_before(call: Call) -> None:
                died.append(call.operation)
                call.machine.die()

            schedules.once(_is_count, die_before)
        schedules.make(overlap=overlap, remaining_runs=3)
        schedules.run(LATEST)
        assert died
        assert (len(begun(schedules)), schedules.schedule()["state"]) == (3, "ended")


@pytest.mark.slow
def test_runs_that_wait_for_a_lock_are_counted_once() -> None:
    """Overlapping runs that wait for one lock are each counted once."""
    with Schedules() as schedules:
        schedules.last(200)
        task = {"type": PLAIN, "timeout_seconds": 600, "lock": {"key": "one"}}
        schedules.make(rate="20 seconds", overlap="allow_all", remaining_runs=12, task=task)
        schedules.run(HOUR)
        assert (len(begun(schedules)), schedules.schedule()["state"]) == (12, "ended")


@pytest.mark.parametrize("number", [5, 1])
def test_exactly_the_new_number_of_runs_begins_after_a_change(number: int) -> None:
    """If `remaining_runs` is changed after two of three runs, exactly the new number of runs still begins."""
    with Schedules() as schedules:
        schedules.make(remaining_runs=3)
        assert schedules.run_until(lambda: len(begun(schedules)) == 2, 5 * MINUTE, SECOND)
        assert schedules.amend(remaining_runs=number).status == 200
        assert schedules.schedule()["remaining_runs"] == number
        schedules.run(20 * MINUTE)
        assert (len(begun(schedules)), schedules.schedule()["state"]) == (2 + number, "ended")


def test_a_limit_on_runs_can_be_set_and_removed_later() -> None:
    """A limit of two ends the schedule after two runs, and removing the limit makes the schedule run again."""
    with Schedules() as schedules:
        schedules.make(overlap="allow_all")
        schedules.run(2 * MINUTE)
        before = len(begun(schedules))
        assert schedules.amend(remaining_runs=2).status == 200
        schedules.run(10 * MINUTE)
        assert (len(begun(schedules)) - before, schedules.schedule()["state"]) == (2, "ended")
        assert schedules.amend(remaining_runs=None).status == 200
        schedules.run(5 * MINUTE)
        assert len(begun(schedules)) >= before + 2 + 4


@pytest.mark.parametrize(
    ("overlap", "limit", "number"), [("allow_all", None, 0), ("skip", None, 5), ("allow_all", 5, 5), ("skip", 5, 5)]
)
def test_only_limited_or_nonoverlapping_runs_cost_a_write_for_counting(
    overlap: str, limit: int | None, number: int
) -> None:
    """Counting costs one write per run if runs are limited or may not overlap, and otherwise no write."""
    with Schedules() as schedules:
        counts: list[Call] = []
        schedules.before_call = lambda call: counts.append(call) if _is_count(call) else None
        schedules.make(overlap=overlap, remaining_runs=limit)
        assert schedules.run_until(lambda: len(begun(schedules)) == 5, 10 * MINUTE, 10 * SECOND)
        assert len(counts) == number
