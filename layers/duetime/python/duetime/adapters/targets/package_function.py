"""Runs one phase of an attempt in a handler package's function. A worker sends the phase, and receives how it ended."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any

from duetime.adapters.targets.egress import EgressFailed, EgressUnavailable
from duetime.adapters.targets.packaged_work import MOST_REPLY_BYTES, bytes_of, packed_ending, payload_in, task_in
from duetime.domain.errors import Unavailable
from duetime.domain.operating_parameters import HEARTBEATS_PER_LEASE
from duetime.domain.tasks.attempt_results import NotSent, failure
from duetime.domain.tasks.steps import may_have_steps
from duetime.domain.tasks.targets import Phase
from duetime.domain.tasks.task import RequestedAction
from duetime.domain.times import SECOND
from duetime.handlers import LeaseLost
from duetime.ports.targets import Work
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from duetime.adapters.targets.python_handlers import HandlerRunner
    from duetime.domain.tasks.task import Progress
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Clock, Process

REPORT_INTERVAL: Millis = 5 * SECOND
"""Shortest time between two progress reports, and maximum age of the user's request that a handler reads."""
_TRIES, _PAUSE = 4, SECOND
_MARGIN, _MARGIN_SHARE = 0.5, 0.1
"""A handler's process is ended this many seconds before its deadline, or this share of its time if that is shorter."""


@dataclass
class AttemptChannel:
    """Sends the reports of a running handler during one phase.

    Attributes:
        invoke: invokes the attempts function with an event, and returns its response.
        attempt: the attempt's token.
        confirmed_at: the last known time at which the attempt had its task.
        requested_action: the user's request at that time.
        unsent: progress that no report has sent yet.
        leased_until: the last known end of the worker's lease, by this clock.
    """

    invoke: Callable[[bytes], bytes]
    attempt: str
    phase: Phase
    clock: Clock
    has_earlier_steps: bool
    confirmed_at: Millis
    requested_action: RequestedAction | None = None
    unsent: Progress | None = None
    saved: bool = False
    lost: bool = False
    leased_until: Millis = 0
    _lock: Lock = field(default_factory=Lock, init=False)
    _reported_at: Millis = field(default=0, init=False)

    def report(self, progress: Progress | None) -> None:
        """Report progress; `None` sends a report at once, which also reads the user's request."""
        self.unsent = progress or self.unsent
        if progress is None or self.clock.now() >= self._reported_at + REPORT_INTERVAL:
            self._send_report()

    def ask(self) -> RequestedAction | None:
        """The user's current request, which is at most a few seconds old."""
        if self.clock.now() >= self.confirmed_at + REPORT_INTERVAL:
            self._send_report()
        return self.requested_action

    def has_worker(self) -> bool:
        """Whether the worker still renews the lease. If the worker is lost, the lease ends soon."""
        self._send_report()
        return not self.lost and self.clock.now() < self.leased_until

    def _send_report(self) -> None:
        with self._lock:
            progress, self.unsent, self._reported_at = self.unsent, None, self.clock.now()
        packed = None if progress is None else (progress.percent, progress.message)
        try:
            answer = self._asked("report", progress=packed)
        except Unavailable:
            # The progress is kept, so that the next report sends it.
            self.unsent = self.unsent or progress
            return
        if answer is not None:
            self.leased_until = self.clock.now() + answer["leased_for"]
        action = None if answer is None else answer["requested_action"]
        self.requested_action = None if action is None else RequestedAction(action)

    def save_checkpoint(self, checkpoint: bytes) -> bool:
        """Store a checkpoint, and return whether the attempt still has its task."""
        self.saved = self._asked("checkpoint", checkpoint=checkpoint.decode()) is not None or self.saved
        return not self.lost

    def load(self) -> Mapping[str, bytes]:
        """The stored results of the phase by step name."""
        return self._results("load") if self.has_earlier_steps else {}

    def load_run(self) -> Mapping[str, bytes]:
        """The stored results of the phase `run` by step name."""
        return self._results("load_run")

    def begin(self) -> Millis | None:
        """The start time of a step; `None` if the attempt has lost its task."""
        if self.clock.now() >= self.confirmed_at + REPORT_INTERVAL:
            self._send_report()
        return None if self.lost else self.clock.now()

    def keep(self, name: str, result: bytes, began: Millis) -> bytes:
        """Store a result, and return the stored result.

        Raises:
            LeaseLost: the attempt has lost its task.
            Unavailable: the attempts function does not respond.
        """
        answer = self._asked("keep", name=name, result=result.decode(), began=began)
        if answer is None:
            raise LeaseLost
        stored: str = answer["result"]
        return stored.encode()

    def request(self, event: bytes) -> bytes:
        """Send a request to the API on behalf of the attempt.

        Raises:
            EgressUnavailable: the request was not sent.
            EgressFailed: the request received no response, or the attempt has lost its task.
        """
        answer = json.loads(self._invoked("request", request=json.loads(event)))
        if self._finds_it_lost(answer):
            raise EgressFailed("the attempt has lost its lease")
        return json.dumps(answer["response"]).encode()

    def _results(self, operation: str) -> dict[str, bytes]:
        answer = self._asked(operation)
        if answer is None:
            raise LeaseLost
        return {name: result.encode() for name, result in answer["results"].items()}

    def _asked(self, operation: str, **more: object) -> dict[str, Any] | None:
        """The response to an operation that may be repeated; `None` if the attempt has lost its task."""
        for tried in range(_TRIES):
            try:
                answer: dict[str, Any] = json.loads(self._invoked(operation, **more))
            except (EgressUnavailable, EgressFailed) as error:
                if tried == _TRIES - 1:
                    raise Unavailable(f"the attempts function: {error}") from error
                self.clock.sleep_until(self.clock.now() + (_PAUSE << tried))
            else:
                return None if self._finds_it_lost(answer) else answer
        raise AssertionError

    def _invoked(self, operation: str, **more: object) -> bytes:
        event = {"attempt": self.attempt, "phase": self.phase, "operation": operation, **more}
        return self.invoke(json.dumps(event).encode())

    def _finds_it_lost(self, answer: Mapping[str, Any]) -> bool:
        self.lost = bool(answer.get("lost"))
        self.confirmed_at = self.clock.now()
        return self.lost


@dataclass
class WorkerWatch:
    """Ends this process if its worker is lost, because another worker will run the task again.

    Attributes:
        interval: the time between two checks, in seconds. Handlers that end sooner are not checked.
    """

    channel: AttemptChannel
    interval: float
    process: Process
    at: Callable[[float, Callable[[], None]], Callable[[], None]]
    _cancel: Callable[[], None] = lambda: None
    _has_ended: bool = False

    def start(self) -> None:
        """Start the checks."""
        rest = (self.channel.leased_until - self.channel.clock.now()) / SECOND
        self._cancel = self.at(max(0.0, min(self.interval, rest)), self._check)

    def stop(self) -> None:
        """Stop the checks."""
        self._has_ended = True
        self._cancel()

    def _check(self) -> None:
        has_worker = self.channel.has_worker()
        if self._has_ended:
            return
        if has_worker:
            self.start()
        else:
            self.process.end()


@frozen
class PackageFunction:
    """Runs the handlers in one handler package.

    Attributes:
        runner_for: returns the runner for a phase whose handler uses the given channel.
        invoke: invokes the attempts function.
        process: this process, which is ended if a handler does not end.
        at: calls a function after a number of seconds; returns a function that cancels the call.
    """

    runner_for: Callable[[AttemptChannel], HandlerRunner]
    invoke: Callable[[bytes], bytes]
    clock: Clock
    process: Process
    at: Callable[[float, Callable[[], None]], Callable[[], None]]

    def answer(self, event: Mapping[str, Any]) -> dict[str, Any]:
        """Run the phase in an event, and return the reply."""
        seconds: float = event["seconds"]
        channel = self._channel(event)
        interval = event["lease"] / SECOND / HEARTBEATS_PER_LEASE
        watch = WorkerWatch(channel, interval, self.process, self.at)
        cancel = self.at(seconds - min(_MARGIN, seconds * _MARGIN_SHARE), self.process.end)
        watch.start()
        try:
            return self._answer(event, channel)
        finally:
            watch.stop()
            cancel()

    def _channel(self, event: Mapping[str, Any]) -> AttemptChannel:
        task, phase = task_in(event), Phase(event["phase"])
        action = event["requested_action"]
        return AttemptChannel(
            self.invoke,
            event["attempt"],
            phase,
            self.clock,
            may_have_steps(task, phase),
            confirmed_at=self.clock.now(),
            requested_action=None if action is None else RequestedAction(action),
            # The worker renews the lease after each third of its duration, so at least two thirds are left.
            leased_until=self.clock.now() + event["lease"] * 2 // 3,
        )

    def _answer(self, event: Mapping[str, Any], channel: AttemptChannel) -> dict[str, Any]:
        task, phase = task_in(event), channel.phase
        runner = self.runner_for(channel)
        if (why := runner.package.why_broken()) is not None:
            return packed_ending(NotSent(f"HandlersUnavailable: {why}"))
        work = Work(
            phase=phase,
            task=task,
            payload=payload_in(event),
            checkpoint=bytes_of(event["checkpoint"]),
            deadline=event["deadline"],
            seconds=event["seconds"],
            report=channel.report,
            requested_action=channel.ask,
            inputs=bytes_of(event["inputs"]),
            step_keeper=lambda: channel,
            save_checkpoint=channel.save_checkpoint if event["may_save"] else None,
        )
        reply = packed_ending(runner.run(work))
        if len(json.dumps(reply)) > MOST_REPLY_BYTES:
            message = "the result is larger than a response of Lambda can be"
            reply = packed_ending(failure("ResultTooLarge", message, retriable=False))
        if channel.unsent is not None:
            reply["progress"] = (channel.unsent.percent, channel.unsent.message)
        return {**reply, "saved": channel.saved}
