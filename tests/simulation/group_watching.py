"""Users of groups, and the invariants of groups, under all faults.

The task of a group's completion runs only when all tasks that name the group have ended. Only the records are used to
find the members. The members' items are checked only at the end, when the counts must agree.
"""

from __future__ import annotations

from collections import Counter
from functools import partial
from random import Random
from typing import TYPE_CHECKING, Any

from duetime.adapters.dynamodb.task_items import ATTRIBUTES, task_of
from duetime.domain.tasks.states import TERMINAL, State
from duetime.domain.times import SECOND
from tests.simulation import works

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from tests.simulation.fault_simulation import FaultSimulation

_COMPLETES, _STATE = ATTRIBUTES["completes"].name, ATTRIBUTES["state"].name
_RAN = frozenset({State.SUCCEEDED, State.FAILED})


class GroupUsers:
    """Creates members of groups and closes the groups, in any order."""

    def __init__(self, account: FaultSimulation) -> None:
        self._account = account
        self.closed: dict[str, str] = {}
        """For each group whose closing was acknowledged, the task that runs after the group."""

    def use(self, until: Millis) -> None:
        """Repeatedly create a group, and close the group while tasks may still join."""
        account, draw = self._account, Random(f"{self._account.seed} groups")  # noqa: S311 - repeatable
        number = 0
        while account.time.now() < until:
            account.take(draw.randrange(5, 60) * SECOND)
            number += 1
            group = f"group-{number}"
            for place in range(draw.randrange(6)):
                body = {
                    "type": works.PLAIN,
                    "delay_seconds": draw.choice([0, 0, 1, 20, 90]),
                    "timeout_seconds": 60,
                    "notify_within_seconds": 60,
                    "retry": {"max_attempts": draw.choice([1, 3])},
                    "group": {"id": group},
                }
                account.time.start_process(partial(self._join, body, f"{group}-{place}", draw.random() < 0.5))
            account.take(draw.choice([1, 300, 3 * SECOND]))
            rule = draw.choice(["all_done", "all_done", "all_success", "one_failed"])
            account.time.start_process(partial(self._close, group, rule))
            if draw.random() < 0.3:
                account.take(draw.randrange(30 * SECOND))
                account.users.ask("POST", f"/v1/groups/{group}/{draw.choice(['cancel', 'retry'])}")
                account.users.ask("GET", f"/v1/groups/{group}")

    def _join(self, body: dict[str, Any], key: str, repeats: bool) -> None:  # noqa: FBT001 - a draw
        """Create a member of a group; some clients repeat a request that got no response."""
        for _ in range(3 if repeats else 1):
            headers = {"Idempotency-Key": key} if repeats else {}
            answer = self._account.users.ask("POST", "/v1/tasks", body, headers=headers)
            if answer is not None and answer.status < 500:
                self._account.watching.check(answer.status in {201, 409}, f"a member was answered {answer.body}")
                return
            self._account.take(2 * SECOND)

    def _close(self, group: str, rule: str) -> None:
        body = {
            "on_complete": {
                "task": {"type": works.PLAIN, "timeout_seconds": 60, "notify_within_seconds": 60},
                "rule": rule,
            }
        }
        for _ in range(4):
            answer = self._account.users.ask("PUT", f"/v1/groups/{group}", body)
            if answer is not None and answer.status == 200:
                self.closed[group] = answer.body["on_complete"]["task_id"]
                return
            self._account.take(2 * SECOND)


class GroupWatching:
    """Watches when the tasks that follow groups run."""

    def __init__(self, account: FaultSimulation) -> None:
        self._account = account
        self.ran = 0
        self._ended: set[str] = set()

    def written(self, old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> None:
        """Check that all members of a group have ended when the task after the group has run.

        A member that is retried by a user afterwards may be open again.
        """
        if new is None or _STATE not in new:
            return
        task = task_of(new)
        if task.state in TERMINAL:
            self._ended.add(task.id.text)
        if _COMPLETES not in new:
            return
        if task.state not in _RAN or (old is not None and task_of(old).state in TERMINAL):
            return
        self.ran += 1
        for member in self._members(task.completes or ""):
            self._account.watching.check(
                member.id.text in self._ended,
                f"{task.id} ran after {task.completes}, whose member {member.id} is {member.state}",
            )

    def check_end(self) -> None:
        """Check that each closed group's task exists and has ended, and that the group counts its members correctly."""
        for group, completion in self._account.group_users.closed.items():
            task = self._account.watching.record(completion)
            is_over = task is not None and task.is_terminal
            self._account.watching.check(is_over, f"the task {completion} after {group} has not ended")
            shown = self._account.users.ask("GET", f"/v1/groups/{group}")
            counts = Counter(str(member.state) for member in self._members(group))
            if shown is not None and shown.status == 200:
                told = dict(shown.body["counts"])
                self._account.watching.check(told == dict(counts), f"{group} counts {told}, and has {dict(counts)}")
                self._account.watching.check(shown.body["state"] == "completed", f"{group} is {shown.body['state']}")

    def _members(self, group: str) -> Iterator[Task]:
        return (task for task in self._account.watching.tasks() if task.group == group)
