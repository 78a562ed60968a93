"""Users who create, change, pause, run, backfill and delete schedules."""

from __future__ import annotations

from functools import partial
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Any

from duetime.domain.times import DAY, HOUR, MINUTE, SECOND, Millis, to_iso
from tests.simulation import works
from tests.simulation.event_watching import expected_every
from tests.simulation.schedule_watching import OWNER

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.domain.tasks.task import Task
    from tests.simulation.fault_simulation import FaultSimulation
    from tests.simulation.users import Reply, Users

PATH = "/v1/schedules"
_LASTS = 3 * MINUTE
"""For schedules that have an end, how long after the last faults they end."""
_AGAIN = 0.7
"""The probability that a deleted schedule's name is used again, rather than a new name."""
_EXCLUDED = 0.1
"""The fraction of schedules whose calendar excludes all their times."""
_MOVED = 0.3
"""The fraction of the other schedules whose calendar is replaced repeatedly."""
_ROLLED = 0.25
"""The fraction of all other schedules whose frequently changed calendar moves other days' times to today."""
_ONLY_FILLED = 2
"""One in this many schedules is only backfilled."""
_HOURS = "/v1/calendars/hours"
_DAYS = "/v1/calendars/days"
_ANSWERED = range(200, 500)


class ScheduleUsers:
    """Users' actions on schedules, at random times."""

    def __init__(self, simulation: FaultSimulation, users: Users) -> None:
        self.simulation = simulation
        self.random = simulation.random
        self.users = users
        self.named: list[str] = []
        self.vacant: list[str] = []
        self._numbers = count(1)
        self._has_calendar = self._has_hours = False
        self._moved: set[str] = set()
        self._rolled: set[str] = set()
        # This uses a separate random generator, so that the other draws of a seed stay the same.
        self._rolls = Random(f"{simulation.seed} rolls")  # noqa: S311 - not a secret

    def use(self, until: Millis) -> None:
        """Act at random until this time."""
        answer = self.users.ask("PUT", "/v1/calendars/always", {"windows": [{"start": "00:00", "end": "24:00"}]})
        self._has_calendar = answer is not None and answer.status in {200, 201}
        self._has_hours = self._replace_hours() is not None
        while self.simulation.time.now() < until:
            self.simulation.take(self.random.randrange(1, 40 * SECOND))
            if not self.named or (self.random.random() < 0.4 and len(self.named) < 4):
                self._create(until + _LASTS)
            elif self.random.random() < 0.4:
                self._control(self.random.choice(self.named))

    def end_runs(self, until: Millis) -> None:
        """Cancel runs of permanent schedules.

        The process that cancels a run may crash before it places the next run.
        """
        # This uses a separate random generator, so that the other draws of a seed stay the same.
        source = Random(f"{self.simulation.seed} runs")  # noqa: S311 - not a secret
        while self.simulation.time.now() < until:
            self.simulation.take(source.randrange(1, 30 * SECOND))
            for task in self._permanent_runs():
                assert task.schedule_ref is not None
                self.simulation.schedules.disturbed.add(task.schedule_ref.schedule)
                self.users.cancel(task.id.text)

    def _permanent_runs(self) -> list[Task]:
        runs = [task for task in self.simulation.watching.unfinished() if task.schedule_ref is not None]
        store = self.simulation.schedules.store
        schedules = {name: store.read(OWNER, name)[0] for name in self.named}
        permanent = {name for name, stored in schedules.items() if stored is not None and stored.is_permanent}
        return [task for task in runs if task.schedule_ref and task.schedule_ref.schedule in permanent]

    def _create(self, ends_at: Millis) -> None:
        # A deleted schedule's name is often used again at once.
        is_again = self.vacant and self.random.random() < _AGAIN
        name = self.vacant.pop() if is_again else f"schedule-{next(self._numbers)}"
        body = self._body(name, ends_at)
        asked_at = self.simulation.time.now()
        self.simulation.schedules.let_go(name)
        for _ in range(4):
            answer = self.users.ask("POST", PATH, body)
            if answer is not None and answer.status in _ANSWERED:
                # The response is 409 if an earlier request without a response has created the schedule.
                self.simulation.watching.check(answer.status in {201, 409}, f"{name} was answered {answer.body}")
                if answer.status == 201:
                    self.simulation.schedules.accepted[name] = answer.body["created_at"]
                break
            self.simulation.take(2 * SECOND)
        # The schedule may exist even if there was no response.
        self.named.append(name)
        self.simulation.schedules.made(name, asked_at)
        if name in self._moved:
            # Whether and when the schedule's occurrences run depends on the calendar's state at that time.
            self.simulation.schedules.disturbed.add(name)

    def _body(self, name: str, ends_at: Millis) -> dict[str, Any]:
        pick = self.random.choice
        task = {
            "type": pick([works.PLAIN, works.PLAIN, works.UNDONE]),
            "timeout_seconds": 60,
            "notify_within_seconds": 60,
            "retry": {"max_attempts": pick([1, 2]), "initial_seconds": 1},
        }
        body: dict[str, Any] = {"name": name, "task": task, **self._timing()}
        if "permanent" not in body:
            body["overlap"] = self._overlap()
        if not (self.random.random() < 0.3 and ("cron" in body or "permanent" in body)):
            body["end_at"] = to_iso(ends_at)
        if self.random.random() < 0.15:
            body["remaining_runs"] = 5
            self.simulation.occurrences.limits[name] = 5
        else:
            self.simulation.occurrences.limits.pop(name, None)
        self.simulation.occurrences.excluded.discard(name)
        if self._has_calendar and "permanent" not in body and self.random.random() < _EXCLUDED:
            body["calendars"] = ["always"]
            body.setdefault("end_at", to_iso(ends_at))
            self.simulation.occurrences.excluded.add(name)
        elif self._has_hours and "permanent" not in body and self.random.random() < _MOVED:
            body["calendars"] = ["hours"]
            body["on_excluded"] = pick(["move", "move", "skip"])
            body.setdefault("end_at", to_iso(ends_at))
            self._moved.add(name)
        elif "permanent" not in body and self._rolls.random() < _ROLLED and self._replace_days() is not None:
            body = {**body, **self._rolled_timing()}
            body.setdefault("end_at", to_iso(ends_at))
            self._moved.add(name)
            self._rolled.add(name)
        if "permanent" not in body:
            body["expect_every_seconds"] = expected_every(name)
        body["pause_on_failure"] = self.random.random() < 0.15
        if "permanent" not in body:
            body["catch_up_mode"] = pick(["latest", "all"])
            body["spread_seconds"] = pick([0, 0, 30])
        return body

    def _replace_hours(self) -> Reply | None:
        """Let a calendar exclude different minutes than before."""
        start = self.simulation.time.now() + self.random.randrange(-2, 5) * MINUTE
        end = start + self.random.randrange(1, 4) * MINUTE
        window = {"start": to_iso(start)[11:16], "end": to_iso(end)[11:16]}
        answer = self.users.ask("PUT", _HOURS, {"windows": [window]})
        return answer if answer is not None and answer.status in {200, 201} else None

    def _rolled_timing(self) -> dict[str, Any]:
        """A timing whose times differ each day, so that moved occurrences do not coincide with existing occurrences."""
        every = self._rolls.choice(["35 seconds", "70 seconds", "110 seconds"])
        start = self.simulation.time.now() - 2 * DAY - self._rolls.randrange(HOUR)
        return {
            **dict.fromkeys(("cron", "timings"), None),
            "rate": every,
            "start_at": to_iso(start),
            "calendars": ["days"],
            "on_excluded": self._rolls.choice(["previous_day", "next_day"]),
        }

    def _replace_days(self) -> Reply | None:
        """Let a calendar exclude some minutes of yesterday and tomorrow, whose occurrences are moved to today."""
        start = self.simulation.time.now() + self._rolls.randrange(-2, 5) * MINUTE
        length = self._rolls.randrange(1, 4) * MINUTE
        spans = [{"start": to_iso(start + days * DAY), "end": to_iso(start + days * DAY + length)} for days in (-1, 1)]
        answer = self.users.ask("PUT", _DAYS, {"spans": spans})
        return answer if answer is not None and answer.status in {200, 201} else None

    def _timing(self) -> dict[str, Any]:
        return dict(
            self.random.choice(
                [
                    {"cron": "* * * * *"},
                    {"cron": "*/2 * * * *"},
                    {"rate": "20 seconds"},
                    {"rate": "45 seconds"},
                    {"timings": [{"cron": "*/2 * * * *"}, {"rate": "40 seconds"}]},
                    {"permanent": {"gap_seconds": 15}},
                ]
            )
        )

    def _edit(self, path: str) -> Reply | None:
        """Replace a calendar, or change a field that does not change the schedule's times."""
        if path.removeprefix(f"{PATH}/") in self._rolled and self._rolls.random() < 0.5:
            return self._replace_days()
        if self.random.random() < 0.5:
            return self._replace_hours()
        return self.users.ask("PATCH", path, {"jitter_seconds": self.random.choice([0, 10, 20])})

    def _change_overlap(self, name: str) -> Reply | None:
        self.simulation.occurrences.overlapping.add(name)
        return self.users.ask("PATCH", f"{PATH}/{name}", {"overlap": self._overlap()})

    def _fill_back(self, method: str, path: str) -> Reply | None:
        """Backfill a period.

        Without a response, part of the backfill may exist, so the timing is changed afterwards.
        """
        own = path.removesuffix("/backfills")
        name = own.removeprefix(f"{PATH}/")
        start = self.simulation.time.now() - 100 * MINUTE
        # A slow backfill needs several expansions of its schedule.
        per_minute, minutes = Random(f"{name} {start}").choice([(20, 3), (1, 6)])  # noqa: S311 - not a secret
        end = start + minutes * MINUTE
        self.simulation.schedules.fills_back(name, start, end)
        period = {"scheduled_after": to_iso(start), "scheduled_before": to_iso(end), "per_minute": per_minute}
        period["only_missing"] = self.random.choice([True, False])
        period["overlap"] = self.random.choice(["allow_all", "buffer_all"])
        answer = self.users.ask(method, path, period)
        if answer is None or answer.status not in _ANSWERED:
            self.simulation.schedules.let_go(name)
            self.simulation.schedules.disturbed.add(name)
            self.users.ask("PATCH", own, self._timing())
        return answer

    def _overlap(self) -> str:
        policies = ["allow_all", "allow_all", "skip", "buffer_one", "buffer_all", "cancel_other", "replace_other"]
        return str(self.random.choice(policies))

    def _control(self, name: str) -> None:
        path, schedules, ask = f"{PATH}/{name}", self.simulation.schedules, self.users.ask
        calls: list[Callable[[], Reply | None]] = [
            partial(ask, "POST", f"{path}/pause", {"reason": "by chance"}),
            partial(ask, "POST", f"{path}/resume"),
            partial(self._change_overlap, name),
            partial(ask, "PATCH", path, self._timing()),
            partial(ask, "PATCH", path, {"pause_on_failure": False, "catch_up_seconds": 1800}),
            partial(ask, "POST", f"{path}/run"),
            partial(self._fill_back, "POST", f"{path}/backfills"),
            partial(ask, "GET", f"{path}/occurrences"),
            partial(self._edit, path),
        ]
        if int(name.rpartition("-")[2]) % _ONLY_FILLED == 0:
            # For these schedules, only the occurrences that a backfill has placed are required.
            calls = [partial(self._fill_back, "POST", f"{path}/backfills"), partial(ask, "GET", path)]
        elif self.random.random() < 0.25:
            calls = [partial(ask, "DELETE", path)]
        call = self.random.choice(calls)
        method, asked = (*call.args, path)[:2] if len(call.args) > 1 else ("PATCH", path)  # type: ignore[attr-defined]  # they are partials
        if method == "DELETE":
            # The schedule may be deleted even if there is no response.
            schedules.accepted.pop(name, None)
        if method != "GET" and not asked.endswith("/backfills"):
            schedules.disturbed.add(name)
        if asked.endswith("/resume") or method == "PATCH":
            # The schedule may be active from now on, before its response or even without one.
            schedules.let_go(name)
        answer = call()
        if answer is not None and answer.status == 200 and (method == "DELETE" or asked.endswith("/pause")):
            schedules.held(name)
        if answer is not None and answer.status == 200 and method == "DELETE":
            schedules.removed(name)
            self.named.remove(name)
            self.vacant.append(name)
            if self.random.random() < _AGAIN:
                # The name is reused at once, so that work for the old schedule meets the new schedule.
                self._create(self.simulation.time.now() + 2 * _LASTS)
