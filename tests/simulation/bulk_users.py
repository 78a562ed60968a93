"""Users who act on many tasks at once, and operators who set switches and release locks."""

from __future__ import annotations

from functools import partial
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Any

from duetime.domain.times import SECOND, Millis
from tests.simulation import works

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.simulation.fault_simulation import FaultSimulation
    from tests.simulation.users import Users

_ANSWERED = range(200, 500)
_LOCKS = ("a", "b")
_STOPPED = 0.4
"""The fraction of long-running operations that their users stop."""


class BulkUsers:
    """Actions of users and operators on several tasks, at random times."""

    def __init__(self, simulation: FaultSimulation, users: Users) -> None:
        self.simulation = simulation
        self.random = simulation.random
        self.users = users
        self._numbers = count(1)
        self._changed: dict[str, str] = {}

    def use(self, until: Millis) -> None:
        """Act at random until this time."""
        calls: list[Callable[[], object]] = [
            *2 * [partial(self.users.create_batch, [0, 60, 300])],
            *(self._cancel_by_filter, self._change_by_filter, self._redrive, self._switch, self._free_lock),
            *(partial(self._read, path) for path in ("/v1/tasks", "/v1/locks", "/v1/switches")),
            *(self._read_by_ids, self._keep_calendar),
        ]
        while self.simulation.time.now() < until:
            self.simulation.take(self.random.randrange(1, 40 * SECOND))
            self.random.choice(calls)()

    def restore(self) -> None:
        """Delete all switches, so that switches no longer delay tasks."""
        self.simulation.attempts.unswitched()
        answer = self.users.ask("GET", "/v1/switches")
        for switch in answer.body["switches"] if answer is not None and answer.status == 200 else []:
            self.users.ask("DELETE", f"/v1/switches/{switch['scope']}/{switch['name']}")

    def _filter(self) -> dict[str, Any]:
        stored = [task.name for task in self.simulation.watching.unfinished() if task.name and task.node_ref is None]
        return {"name": self.random.choice(stored)} if stored else {"type": works.PHASED}

    def _cancel_by_filter(self) -> None:
        """Cancel the tasks that match a filter; sometimes repeat the request, and sometimes stop its operation."""
        meant = self._filter()
        self.simulation.attempts.may_cancel.update(meant.values())
        body = {"filter": meant, "force": self.random.random() < 0.5}
        if self.random.random() < 0.4:
            body["per_second"] = self.random.choice([0.2, 1, 5])
        headers = {"Idempotency-Key": f"bulk-{next(self._numbers)}"}
        for _ in range(self.random.choice([1, 1, 2])):
            answer = self.users.ask("POST", "/v1/tasks/cancel", body, headers=headers)
            if answer is not None and answer.status == 202 and self.random.random() < 0.5:
                self.users.ask("POST", f"/v1/bulk-operations/{answer.body['id']}/cancel")
        self.users.ask("GET", "/v1/bulk-operations")

    def _change_by_filter(self) -> None:
        """Change the priority of tasks that match a filter.

        Nothing else changes priorities, so each task keeps its last priority.
        """
        meant, priority = self._filter(), self.random.choice(["high", "low"])
        name = meant.get("name", "")
        self._changed.pop(name, None)
        answer = self.users.ask("POST", "/v1/tasks/update", {"filter": meant, "update": {"priority": priority}})
        if "name" not in meant:
            # A filter by type changes all tasks of the type that have not started.
            self._changed.clear()
        elif answer is not None and answer.status == 200 and answer.body["affected"]:
            self._changed[name] = priority
            self.check_changed()

    def change_slowly(self, until: Millis) -> None:
        """Change the tags of many tasks with operations that last for minutes, and stop some of these operations."""
        draw = Random(f"{self.simulation.seed} slowly")  # noqa: S311 - repeatable on purpose
        while self.simulation.time.now() < until:
            self.simulation.take(draw.randrange(1, 40) * SECOND)
            meant = {"type": draw.choice([works.PLAIN, works.UNDONE, works.PHASED])}
            pace = {"per_second": draw.choice([0.1, 0.2, 1])}
            body = {"filter": meant, "update": {"tags": {"bulk": str(next(self._numbers))}}, **pace}
            answer = self.users.ask("POST", "/v1/tasks/update", body)
            if answer is None or answer.status != 202:
                continue
            self.simulation.count("bulk operation")
            if draw.random() < _STOPPED:
                self.simulation.take(draw.randrange(60) * SECOND)
                self.users.ask("POST", f"/v1/bulk-operations/{answer.body['id']}/cancel")

    def check_changed(self) -> None:
        """Check that all changes that responses have confirmed to a user are in effect."""
        for task in self.simulation.watching.tasks():
            wanted = self._changed.get(task.name) if task.node_ref is None and task.schedule_ref is None else None
            is_so = wanted in {None, task.priority.value}
            self.simulation.watching.check(
                is_so, f"{task.id} was changed to priority {wanted}, and has {task.priority}"
            )

    def free_locks(self, until: Millis) -> None:
        """Force the release of locks now and then, without other faults."""
        while self.simulation.time.now() < until:
            self.simulation.take(self.random.randrange(1, 120 * SECOND))
            self._free_lock()

    def _redrive(self) -> None:
        self.users.ask("POST", "/v1/tasks/retry", {"filter": {"type": works.PLAIN}, "limit": 3})

    def _switch(self) -> None:
        """Stop or limit a task type for a while."""
        name = self.random.choice([works.PLAIN, works.PHASED])
        how: dict[str, Any] = self.random.choice([{"stopped": True}, {"max_concurrent": 2}])
        path, body = f"/v1/switches/type/{name}", {**how, "reason": "by chance"}
        answer = self.users.ask("PUT", path, body)
        if answer is not None and answer.status == 200:
            self.simulation.attempts.switched(name, how.get("max_concurrent", 0))
        self.simulation.take(self.random.choice([5, 40, 120]) * SECOND)
        self.simulation.attempts.switched(name, None)
        for _ in range(4):
            answer = self.users.ask("DELETE", path)
            if answer is not None and answer.status in _ANSWERED:
                return

    def _free_lock(self) -> None:
        """Force the release of a lock; its old holders may run alongside the next holder until their next heartbeat."""
        key = self.random.choice(_LOCKS)
        self.simulation.watching.freed(key)
        self.users.ask("DELETE", f"/v1/locks/{key}")
        self.simulation.watching.freed(key)

    def _read(self, path: str) -> None:
        self.users.ask("GET", path)

    def _read_by_ids(self) -> None:
        if ids := self.simulation.watching.accepted[-5:]:
            self.users.ask("GET", "/v1/tasks", query="ids=" + ",".join(ids))

    def _keep_calendar(self) -> None:
        """Create, replace or delete a calendar; all calls use the same name."""
        path = "/v1/calendars/holidays"
        body = {"dates": [f"2031-01-{self.random.randrange(1, 28):02}"]}
        if self.random.random() < 0.7:
            self.users.ask("PUT", path, body)
        else:
            self.users.ask("DELETE", path)
        self.users.ask("GET", path)
