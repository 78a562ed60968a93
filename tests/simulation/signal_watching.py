"""Users who send signals, and the invariants of tasks that wait for events, under all faults.

Signals are sent before, while and after tasks begin to wait, by API requests and by events that match an intake rule.
Most tasks wait for weeks, so that a task whose signal is lost is still open when all others have ended.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from itertools import count
from random import Random
from typing import TYPE_CHECKING, Any

from duetime.adapters.dynamodb.task_items import ATTRIBUTES, task_of
from duetime.domain.operating_parameters import INTAKE_RULES_LIFE
from duetime.domain.tasks.event_waits import TIMED_OUT
from duetime.domain.tasks.states import TERMINAL, State
from duetime.domain.tasks.targets import EventTarget
from duetime.domain.times import DAY, MINUTE, SECOND, to_iso
from duetime_testing.simulation.machines import SKEW

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis
    from tests.simulation.fault_simulation import FaultSimulation

_STATE, _TARGET = ATTRIBUTES["state"].name, ATTRIBUTES["target"].name
_EVENT, _WAKES = "paid", "paid-by-event"
_WEEKS = 20 * DAY // SECOND
_CREATED = 2 * MINUTE
"""The time, in milliseconds, within which all tasks that wait with a key are created."""
_CLOCKS = 2 * SKEW
"""The time, in milliseconds, within which two processes may disagree about the order of events."""


@dataclass
class UserSignal:
    """A signal's key, and the times when a user began to send the signal and when the signal was acknowledged."""

    key: str
    asked_at: Millis
    sent_at: Millis | None = None


class SignalUsers:
    """Creates tasks that wait for events, and sends signals at any time."""

    def __init__(self, account: FaultSimulation) -> None:
        self._account = account
        self._numbers = count(1)
        self._is_ruled = False
        self.signals: dict[int, UserSignal] = {}
        """The signals by their payload, which is a number."""
        self._begun_at: dict[str, Millis] = {}
        """The time when the first tasks of a key were created, by key; keys whose last signal was sent are removed."""

    def use(self, until: Millis) -> None:
        """Repeatedly create some tasks that wait for an event with a new key, and send signals with the key."""
        account, draw = self._account, Random(f"{self._account.seed} signals")  # noqa: S311 - repeatable
        while account.time.now() < until:
            account.take(draw.randrange(5, 40) * SECOND)
            key = f"key-{next(self._numbers)}"
            self._begun_at[key] = account.time.now()
            for _ in range(draw.choice([0, 1, 1, 2])):
                self._begin(draw.choice([self.send, self._put_event]), key, draw.randrange(3 * SECOND))
            account.take(draw.choice([1, 300, 2 * SECOND]))
            for _ in range(draw.choice([1, 1, 2, 5])):
                target: dict[str, Any] = {"kind": "wait_for_event", "event": _EVENT, "key": key}
                target["timeout_seconds"] = draw.choice([40, _WEEKS, _WEEKS, _WEEKS])
                target["lookback_seconds"] = draw.choice([0, 0, 30])
                if len(self._begun_at) % 3 == 0:
                    # The task waits neither for the first signal with its key nor for a signal with another key.
                    target["when"] = f"payload > `{int(key.removeprefix('key-')) + 1}`"
                body = {"type": "waits", "target": target, "delay_seconds": draw.choice([0, 0, 0, 1, 20])}
                self._begin(self._create, body, draw.choice([0, 0, 100, 2 * SECOND]))
            for _ in range(draw.choice([1, 1, 2, 3])):
                # Most signals arrive while workers put the tasks back to wait.
                pause = draw.choice([*4 * [draw.randrange(600)], SECOND, 2 * SECOND, 20 * SECOND])
                self._begin(draw.choice([self.send, self.send, self._put_event]), key, pause)

    def _begin(self, act: Any, given: Any, pause: Millis) -> None:  # noqa: ANN401 - what it does, and with what
        self._account.time.start_process(partial(self._later, act, given, pause))

    def _later(self, act: Any, given: Any, pause: Millis) -> None:  # noqa: ANN401 - same
        self._account.take(pause)
        act(given)

    def _create(self, body: dict[str, Any]) -> None:
        answer = self._account.users.ask("POST", "/v1/tasks", body)
        if answer is not None and answer.status == 201:
            self._account.count("waits for an event")
            self._account.watching.accepted.append(answer.body["id"])

    def send(self, key: str) -> int | None:
        """Send a signal until there is a response, and return the signal's number; return `None` without a response."""
        number = next(self._numbers)
        signal = self.signals[number] = UserSignal(key, self._account.time.now())
        body = {"name": _EVENT, "key": key, "payload": number}
        for _ in range(5):
            headers = {"Idempotency-Key": f"signal-{number}"}
            answer = self._account.users.ask("POST", "/v1/signals", body, headers=headers)
            if answer is not None and answer.status in {200, 202}:
                self._account.count("signal")
                signal.sent_at = self._account.time.now()
                return number
            self._account.take(2 * SECOND)
        return None

    def _put_event(self, key: str) -> None:
        """Put an event that a rule turns into a signal on the intake's queue, sometimes twice."""
        if not self._has_rule():
            return
        number = next(self._numbers)
        self.signals[number] = UserSignal(key, self._account.time.now())
        event = {
            "id": f"paid-{number}",
            "source": "users",
            "detail-type": _WAKES,
            "time": to_iso(self._account.time.now()),
            "detail": {"key": key, "number": number},
        }
        for _ in range(1 + number % 2):
            self._account.sqs.send_message(QueueUrl=self._account.intake, MessageBody=json.dumps(event))
        self._account.count("signal by an event")

    def _has_rule(self) -> bool:
        if not self._is_ruled:
            signal = {"name": _EVENT, "fields": {"key": "detail.key", "payload": "detail.number"}}
            rule = {"pattern": {"detail-type": [_WAKES]}, "signal": signal}
            answer = self._account.users.ask("PUT", f"/v1/intake-rules/{_WAKES}", rule)
            self._is_ruled = answer is not None and answer.status == 200
            self._account.take(INTAKE_RULES_LIFE + SECOND)
        return self._is_ruled

    def end_all(self) -> None:
        """Send a last signal with each key, after which no task has to wait."""
        for key, begun_at in list(self._begun_at.items()):
            if self._account.time.now() <= begun_at + _CREATED:
                continue
            next(self._numbers)  # This signal is never the first signal with its key.
            if self.send(key) is not None:
                self._begun_at.pop(key, None)


class SignalWatching:
    """Watches how tasks that wait for events end."""

    def __init__(self, account: FaultSimulation) -> None:
        self._account = account
        self.woken = 0

    def written(self, old: Mapping[str, Any] | None, new: Mapping[str, Any] | None) -> None:
        """Check that a task ends with one signal of its key, or times out only if no signal was sent in time.

        Signals that a scenario sends are not checked here, because the scenario checks them.
        """
        if not self._account.signal_users.signals or old is None or new is None:
            return
        if _STATE not in new or _TARGET not in new:
            return
        before, task = task_of(old), task_of(new)
        if not isinstance(task.target, EventTarget) or before.state in TERMINAL or task.reopened_at is not None:
            return
        if task.state is State.SUCCEEDED:
            self.woken += 1
            self._check_taken(task, task.target)
        elif task.state is State.FAILED and task.error is not None and task.error.type == TIMED_OUT:
            self._check_missed(task, task.target)

    def _check_taken(self, task: Task, target: EventTarget) -> None:
        number = json.loads((task.result.data if task.result else None) or b"null")
        signal = self._account.signal_users.signals.get(number)
        check = self._account.watching.check
        check(signal is not None and signal.key == target.key, f"{task.id} took {number}, which is of {signal}")
        check(number > _least(target), f"{task.id} took {number}, which does not meet {target.when}")
        if signal is None:
            return
        since = task.created_at - target.lookback_seconds * SECOND
        is_late = signal.sent_at is not None and signal.sent_at < since - _CLOCKS
        check(not is_late, f"{task.id} took {number}, which was sent before it")
        earlier = self._known(target, since, signal.asked_at)
        check(not earlier, f"{task.id} took {number}, and not {earlier}")

    def _check_missed(self, task: Task, target: EventTarget) -> None:
        timeout_at = max(task.due_at, task.created_at) + target.timeout_seconds * SECOND
        since = task.created_at - target.lookback_seconds * SECOND
        missed = self._known(target, since, timeout_at)
        check = self._account.watching.check
        check(not missed, f"{task.id} was told that there was no signal, and there was {missed}")
        is_over = self._account.time.now() + _CLOCKS >= timeout_at
        check(is_over, f"{task.id} timed out before its time")

    def _known(self, target: EventTarget, since: Millis, before: Millis) -> list[int]:
        """The signals that a task waits for and that were certainly sent between two times."""
        return [
            number
            for number, signal in self._account.signal_users.signals.items()
            if signal.key == target.key
            and number > _least(target)
            and signal.sent_at is not None
            and signal.asked_at > since + _CLOCKS
            and signal.sent_at + _CLOCKS < before
        ]


def _least(target: EventTarget) -> int:
    """The number that a signal's payload must exceed to meet a task's condition."""
    return int(target.when.split("`")[1]) if target.when else -1
