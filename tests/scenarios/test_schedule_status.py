"""A schedule's status always shows its latest run, the number of started runs, and the next due time."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime.contract.http.timestamps import instant_of
from duetime.domain.tasks.attempt_records import SKIPPED
from duetime.domain.tasks.task import Cause
from duetime.domain.times import DAY, to_iso
from duetime.environment_variables import Variable
from duetime.services.schedules.known_runs import MOST_IN_PASS
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND
from tests.scenarios.schedules import NAME, PATH, Schedules

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.domain.times import Millis
    from duetime_testing.simulation.faults import Call

KINDS: dict[str, tuple[int, dict[str, Any]]] = {
    "takes turns": (25, {"rate": "20 seconds", "overlap": "skip"}),
    "side by side": (25, {"rate": "20 seconds", "overlap": "allow_all"}),
    "waits": (70, {"cron": "* * * * *", "overlap": "buffer_one"}),
    "limited": (5, {"rate": "20 seconds", "overlap": "allow_all", "remaining_runs": 500}),
    "seldom": (5, {"rate": "2 minutes", "overlap": "allow_all"}),
    "jitter": (5, {"rate": "2 minutes", "overlap": "allow_all", "jitter_seconds": 110}),
    "permanent": (20, {"permanent": {"gap_seconds": 40}}),
}


class Observed(Schedules):
    """A schedule that is read repeatedly, both alone and in the list.

    Attributes:
        samples: the time and the response of each read.
        actions: the times of its user's actions.
        moments: when its runs were due, and when they ended.
    """

    def __init__(self) -> None:
        super().__init__()
        self.samples: list[tuple[Millis, dict[str, Any], dict[str, Any]]] = []
        self.actions: list[Millis] = []
        self.moments: list[Millis] = []

    def look(self, duration: Millis, every: Millis = 7 * SECOND) -> None:
        """Read the schedule repeatedly for this long."""
        end = self.now + duration
        while self.now < end:
            self.run(every)
            shown = self.schedule()
            (listed,) = self.ask("GET", "/v1/schedules").body["schedules"]
            self.samples.append((self.now, shown, listed))

    def did(self) -> None:
        """Record that the user did something."""
        self.actions.append(self.now)

    def check(self) -> None:
        """Compare the status in each sample with the runs."""
        runs = {
            task.id.text: task
            for task in self.placed()
            if task.schedule_ref and task.schedule_ref.cause is not Cause.BACKFILL
        }
        self.moments = [at for task in runs.values() for at in (task.due_at, task.finished_at or 0)]
        begun: dict[str, Millis] = {}
        for effect in self.effects:
            if effect.task_id in runs:
                begun.setdefault(effect.task_id, effect.at)
        times = sorted(begun.values())
        checked = 0
        for at, shown, listed in self.samples:
            if any(abs(at - other) <= SECOND for other in [*times, *self.moments]):
                # The run begins, is about to begin or ends during the read.
                continue
            checked += 1
            for name in ("next_at", "runs_started", "remaining_runs"):
                assert shown[name] == listed[name], (at, name)
            # The run's start is more exact after its end, which may come between the two reads.
            told, also = ({**(each["last_run"] or {}), "started_at": None} for each in (shown, listed))
            assert told == also, at
            before = [task_id for task_id, began in begun.items() if began < at]
            latest = max(before, key=lambda task_id: begun[task_id], default=None)
            told = shown["last_run"]
            assert (told and told["task_id"]) == latest, (at, told, latest)
            if latest is not None:
                assert abs(instant_of(told["started_at"]) - begun[latest]) <= SECOND
            # If runs are not counted, past runs are reported, including cancelled and paused runs.
            is_counted = shown["overlap"] != "allow_all" or shown["remaining_runs"] is not None or shown["permanent"]
            stopped = (
                []
                if is_counted
                else [run for task_id, run in runs.items() if task_id not in begun and run.due_at <= at]
            )
            dropped = [run for run in stopped if run.error is not None and run.error.type == SKIPPED]
            number = len(before) + len(stopped) - len(dropped)
            assert shown["runs_started"] == number, (at, shown["runs_started"], number)
            self._check_next(at, shown, [began for began in times if began > at])
        assert checked > 10

    def _check_next(self, at: Millis, shown: dict[str, Any], later: list[Millis]) -> None:
        if shown["next_at"] is not None:
            assert instant_of(shown["next_at"]) > at - SECOND, (at, shown["next_at"])
        if not later or any(at <= action <= later[0] for action in self.actions):
            return
        if shown["next_at"] is None:
            # A permanent schedule's next run is unknown before its current run has ended.
            assert shown["permanent"] is not None
            return
        due = instant_of(shown["next_at"])
        if shown["overlap"] == "buffer_one":
            # An earlier run may still wait.
            return
        # The run is due at this time, but may be skipped if runs must not overlap.
        assert due <= later[0] + SECOND, (at, shown["next_at"], later[0])
        if shown["overlap"] == "allow_all" or shown["permanent"] is not None:
            assert later[0] - due <= SECOND, (at, shown["next_at"], later[0])


def _nothing(schedules: Observed) -> None:
    schedules.look(3 * MINUTE)


def _pause(schedules: Observed) -> None:
    assert schedules.control("pause").status == 200
    schedules.did()
    schedules.look(2 * MINUTE)
    assert schedules.schedule()["next_at"] is None
    assert schedules.control("resume").status == 200
    schedules.did()


def _long_pause(schedules: Observed) -> None:
    assert schedules.control("pause").status == 200
    schedules.did()
    schedules.ticking = False
    schedules.run(3 * DAY)
    schedules.ticking = True
    schedules.look(MINUTE)
    assert schedules.control("resume").status == 200
    schedules.did()


def _changed(**fields: Any) -> Callable[[Observed], None]:  # noqa: ANN401 - JSON
    def change(schedules: Observed) -> None:
        schedules.occurrences.overlapping.add(NAME)
        assert schedules.amend(**fields).status == 200
        schedules.did()

    return change


def _cancel_the_next(schedules: Observed) -> None:
    ahead = [task for task in schedules.placed() if task.due_at > schedules.now and not task.is_terminal]
    for task in ahead[:4]:
        assert schedules.cancel(task.id.text).status == 200
    schedules.did()


def _hold_the_next(schedules: Observed) -> None:
    for task in [task for task in schedules.placed() if task.due_at > schedules.now and not task.is_terminal][:2]:
        assert schedules.do(task.id.text, "pause").status == 200
    schedules.did()


def _run_by_hand(schedules: Observed) -> None:
    schedules.did()
    assert schedules.control("run").status in {200, 201}


def _fill_back(schedules: Observed) -> None:
    start = schedules.now // HOUR * HOUR - 3 * HOUR
    body = {"scheduled_after": to_iso(start), "scheduled_before": to_iso(start + 4 * MINUTE)}
    assert schedules.control("backfills", body).status == 201


EVENTS: dict[str, Callable[[Observed], None]] = {
    "nothing": _nothing,
    "pause": _pause,
    "long pause": _long_pause,
    "another timing": _changed(rate="50 seconds", cron=None, permanent=None),
    "another task": _changed(task={"type": PLAIN, "payload": {"new": 1}, "timeout_seconds": 600}),
    "another overlap": _changed(overlap="allow_all"),
    "turns from now on": _changed(overlap="skip"),
    "a limit": _changed(remaining_runs=100),
    "no limit": _changed(remaining_runs=None),
    "the next cancelled": _cancel_the_next,
    "the next held": _hold_the_next,
    "a run by hand": _run_by_hand,
    "a backfill": _fill_back,
}
NOT_OF_PERMANENT = {"another timing", "another overlap", "turns from now on", "a backfill"}
QUICK = {
    ("takes turns", "pause"),
    ("side by side", "pause"),
    ("side by side", "the next cancelled"),
    ("permanent", "nothing"),
}
PAIRS = [
    pytest.param(kind, event, marks=() if (kind, event) in QUICK else pytest.mark.slow)
    for kind in KINDS
    for event in EVENTS
    if (kind != "permanent" or event not in NOT_OF_PERMANENT) and (event != "a backfill" or "cron" in KINDS[kind][1])
]


@pytest.mark.parametrize(("kind", "event"), PAIRS)
def test_a_schedules_status_is_right_at_every_moment(kind: str, event: str) -> None:
    """A schedule's status is correct at every moment, whatever happens to runs that are already placed."""
    lasts, fields = KINDS[kind]
    with Observed() as schedules:
        schedules.last(lasts)
        schedules.make(**fields)
        schedules.did()
        schedules.look(2 * MINUTE + 10 * SECOND)
        EVENTS[event](schedules)
        schedules.look(4 * MINUTE)
        schedules.check()


@pytest.mark.slow
@pytest.mark.parametrize("overlap", ["skip", "allow_all"])
def test_last_run_is_shown_after_its_task_has_expired(overlap: str) -> None:
    """`last_run` is shown even after the run's task has expired."""
    with Schedules() as schedules:
        schedules.environ[Variable.RETENTION_DAYS] = "8"
        schedules.make(rate="10 days", overlap=overlap)
        schedules.run(MINUTE)
        (run,) = schedules.placed()
        schedules.run(9 * DAY)
        assert (run.id.partition, run.id.text) in schedules.expire()
        shown = schedules.schedule()
        assert shown["last_run"]["task_id"] == run.id.text
        assert shown["runs_started"] == 1


def test_an_expansion_pass_reads_few_records_while_no_worker_runs() -> None:
    """For a schedule that runs every second, the number of records that the trigger reads per minute is limited."""
    with Schedules() as schedules:
        schedules.receiving = False
        schedules.make(rate="1 second", overlap="allow_all")
        schedules.run(5 * MINUTE)
        read = 0

        def count(call: Call) -> None:
            nonlocal read
            if call.machine.function == "trigger" and call.operation == "batch_get_item":
                read += sum(len(each["Keys"]) for each in call.request["RequestItems"].values())

        schedules.before_call = count
        schedules.run(10 * MINUTE)
        assert 0 < read <= 10 * (MOST_IN_PASS + 3 * 60)


def test_a_deletion_returns_the_latest_run_of_the_schedule() -> None:
    """A deletion's response has the latest run, and a new schedule with the same name has no run."""
    with Schedules() as schedules:
        schedules.make(rate="20 seconds")
        schedules.run(MINUTE + 5 * SECOND)
        latest = schedules.effects[-1].task_id
        assert schedules.ask("DELETE", PATH).body["last_run"]["task_id"] == latest
        schedules.make(cron="0 0 1 1 *")
        shown = schedules.schedule()
        assert (shown["name"], shown["last_run"], shown["runs_started"]) == (NAME, None, 0)


def test_a_schedule_that_has_not_run_is_read_without_a_search() -> None:
    """Reading a schedule that has not run looks up only a few records."""
    keys: list[object] = []

    def noted(call: Call) -> None:
        if call.machine.function == "api" and call.operation == "batch_get_item":
            keys.extend(key for table in call.request["RequestItems"].values() for key in table["Keys"])

    with Schedules() as schedules:
        schedules.make()
        schedules.before_call = noted
        assert schedules.schedule()["last_run"] is None
        assert len(keys) <= 10
