"""One attempt of a pull worker: its lease, what its handler may ask and say, and how it ended."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass, field
from threading import Event, Thread
from typing import TYPE_CHECKING, Any

from duetime_client.errors import ApiError, ClientError, Conflict, TaskNotFound, Throttled, Unreachable
from duetime_client.retries import PASSING

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime_client.leases import LeasedTask, Leases, LeaseState

RENEWALS_PER_LEASE = 3
"""A lease is renewed so many times in its length."""
_SHORTEST_PAUSE = 0.2
_LONGEST_PAUSE = 5.0


class Unretriable(Exception):
    """Raise it to fail the task at once: no further attempt would help."""


class LeaseLost(Exception):
    """The lease could not be renewed in time, or was refused: another worker may have the task. Let it pass through."""


class AttemptPaused(Exception):
    """Raised by `Context.stop_if_asked` when the user asked for a pause. Let it pass through."""

    def __init__(self, checkpoint: object = None) -> None:
        super().__init__("the user asked for a pause")
        self.checkpoint = checkpoint


class AttemptCancelled(Exception):
    """Raised by `Context.stop_if_asked` when the user asked for a cancel. Let it pass through."""


@dataclass
class Context:
    """The running attempt, as its handler sees it. Threads may share it.

    Attributes:
        task_id: stable over all attempts: the idempotency key to hand on.
        type: the task's type.
        attempt: 1 for the first.
        fence: grows with every attempt; a store can refuse writes of an older one.
        checkpoint: what an attempt that was paused left for this one; `None` if there is nothing.
        inputs: of a topology's node, the results of the parents that it named in `inputs`, by their names.
    """

    task_id: str
    type: str
    attempt: int
    fence: int
    checkpoint: Any
    _until: float
    inputs: Any = None
    _asked: str | None = None
    _progress: tuple[int, str] | None = None
    _wake: Event = field(default_factory=Event)

    @property
    def asked(self) -> str | None:
        """What the user asks of the attempt, as of the last heartbeat: `pause`, `cancel` or nothing."""
        return self._asked

    @property
    def lost(self) -> bool:
        """Whether the lease is over: another worker may have the task, so nothing more should be done for it."""
        return time.monotonic() >= self._until

    def progress(self, percent: int, message: str = "") -> None:
        """Tell how far the work has come; it is told with the next heartbeat.

        Args:
            percent: 0 to 100; anything beyond is taken to the nearer end.
            message: a few words.
        """
        self._progress = (max(0, min(100, percent)), message[:64])

    def heartbeat(self) -> None:
        """Have the lease renewed now. The worker renews it by itself; this only does it sooner."""
        self._wake.set()

    def stop_if_asked(self, checkpoint: object = None) -> None:
        """Stop here if the user asked for it, or the lease is lost: call it where the work can be left.

        Args:
            checkpoint: what the attempt that goes on after a pause is given, at most 4 KB of JSON.

        Raises:
            LeaseLost: the lease is over.
            AttemptPaused: the user asked for a pause.
            AttemptCancelled: the user asked for a cancel.
        """
        if self.lost:
            raise LeaseLost("the lease is over")
        if self._asked == "pause":
            raise AttemptPaused(checkpoint)
        if self._asked == "cancel":
            raise AttemptCancelled


class Attempt:
    """Runs a handler under a lease that is renewed meanwhile, and tells the API how it ended."""

    def __init__(self, client: Leases, leased: LeasedTask, lease_seconds: int) -> None:
        task = leased.task
        self.leased = leased
        self.context = Context(
            task_id=task.id,
            type=task.type,
            attempt=task.attempt,
            fence=task.fence,
            checkpoint=leased.checkpoint,
            _until=time.monotonic() + leased.lasts.total_seconds(),
            inputs=leased.inputs,
        )
        self._client = client
        self._interval = lease_seconds / RENEWALS_PER_LEASE
        self._ended = Event()

    def run(self, handler: Callable[[Context, Any], object]) -> str:
        """Do the task.

        Returns:
            How it ended: `succeeded`, `postponed`, `failed`, `paused`, `cancelled`, or `lost`.
        """
        beats = Thread(target=self._beat, name=f"heartbeats of {self.context.task_id}", daemon=True)
        beats.start()
        try:
            tell = self._outcome(handler)
        finally:
            self._ended.set()
            self.context.heartbeat()
        return self._told(tell)

    def release(self) -> str:
        """Give the task back without having begun it."""
        return self._told(lambda: self._client.release_lease(self.leased.lease))

    def _outcome(self, handler: Callable[[Context, Any], object]) -> Callable[[], LeaseState]:
        """Call the handler; what is to be told of its end."""
        client, lease = self._client, self.leased.lease
        try:
            result = handler(self.context, self.leased.task.payload)
        except AttemptPaused as pause:
            checkpoint = pause.checkpoint
            return lambda: client.pause_lease(lease, checkpoint)
        except AttemptCancelled:
            return lambda: client.cancel_lease(lease)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - a handler may raise what it likes
            kind, message = type(error).__name__[:64], str(error)
            retriable = not isinstance(error, Unretriable)
            return lambda: client.fail_lease(lease, kind, message, retriable=retriable)
        try:
            json.dumps(result, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as error:
            message = f"what the handler left is not JSON: {error}"
            return lambda: client.fail_lease(lease, "ResultNotJson", message, retriable=False)
        return lambda: client.complete_lease(lease, result)

    def _beat(self) -> None:
        """Renew the lease again and again until the handler ends or the lease is lost."""
        context = self.context
        while not self._ended.is_set() and not context.lost:
            context._wake.wait(min(self._interval, max(0.0, context._until - time.monotonic())))  # noqa: SLF001 - its maker
            context._wake.clear()  # noqa: SLF001 - its maker
            if not self._ended.is_set() and not context.lost:
                self._renew()

    def _renew(self) -> None:
        context = self.context
        progress, context._progress = context._progress, None  # noqa: SLF001 - its maker
        asked_at = time.monotonic()
        try:
            state = self._client.renew_lease(self.leased.lease, *(progress or ()))
        except (Conflict, TaskNotFound):
            # The attempt is another's, or over; if it has ended meanwhile, its end says more.
            if not self._ended.is_set():
                context._until = asked_at  # noqa: SLF001 - its maker
        except Exception:  # noqa: BLE001 - whatever it was, the next one may come through
            # Told with the next one; if none comes through, the lease ends by itself.
            context._progress = context._progress or progress  # noqa: SLF001 - its maker
            self._ended.wait(_SHORTEST_PAUSE)
            context.heartbeat()
        else:
            # From when it was asked for: the API renewed it no sooner.
            context._until = asked_at + state.lasts.total_seconds()  # noqa: SLF001 - its maker
            context._asked = state.asked  # noqa: SLF001 - its maker

    def _told(self, tell: Callable[[], LeaseState]) -> str:
        """Tell the API, again and again while the lease lasts and the network does not answer."""
        pause = _SHORTEST_PAUSE
        while not self.context.lost:
            try:
                return tell().state
            except (Conflict, TaskNotFound):
                return "lost"
            except ClientError as error:
                if not may_pass(error):
                    raise
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
        return "lost"


def may_pass(error: ClientError) -> bool:
    """Whether asking again later may help."""
    return isinstance(error, Unreachable | Throttled) or (isinstance(error, ApiError) and error.status in PASSING)
