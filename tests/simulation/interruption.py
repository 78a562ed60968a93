"""One fault at one call: every store and queue call of a task's life is a point where something may go wrong."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Any

from duetime.domain.errors import Unavailable
from tests.virtual.world import World

if TYPE_CHECKING:
    from collections.abc import Callable


class Fault(Enum):
    """What goes wrong at one call."""

    FAIL = "the call fails, and nothing was done"
    LOSE = "the call is done, but its answer is lost"
    CRASH_BEFORE = "the process dies before the call"
    CRASH_AFTER = "the process dies after the call"


PORTS = frozenset(
    {"create", "read", "read_many", "apply", "add_wake", "read_page", "take", "advance", "keep", "fetch", "expire"}
    | {"send", "come_back", "backlog", "save", "renew", "join", "leave"}
    | {"add_schedule_wake", "save_activity", "remove"}
    | {"add_edge", "add_report", "read_tally", "put_token", "read_token"}
)
"""Calls that leave the process."""
RECEIVING = frozenset({"receive", "delete", "next_visible_at"})
"""Calls that the cloud makes, not a process of ours."""


class Interrupted(World):
    """A world in which exactly one call goes wrong.

    Attributes:
        calls: the calls that processes of ours have made, in order.
    """

    def __init__(self, fault: Fault | None, at_call: int) -> None:
        self.fault = fault
        self.at_call = at_call
        self.calls: list[str] = []
        super().__init__(around=lambda store: _Interrupting(store, self))

    def make(self, name: str, call: Callable[[], Any]) -> Any:  # noqa: ANN401 - what the call answers
        """Make a call, with the fault if it is this one's turn."""
        if self.time._current is None or self.fault is None:
            if self.time._current is not None:
                self.calls.append(name)
            return call()
        self.calls.append(name)
        if len(self.calls) != self.at_call:
            return call()
        match self.fault:
            case Fault.FAIL:
                return self._fail(name)
            case Fault.LOSE:
                answer = call()
                return answer if name == "send" else self._fail(name)
            case Fault.CRASH_BEFORE:
                self.time.kill(self.time.process())
            case Fault.CRASH_AFTER:
                call()
                self.time.kill(self.time.process())
        return None

    def _fail(self, name: str) -> Any:  # noqa: ANN401 - what the call answers
        if name == "send":
            # A queue that does not answer has acknowledged nothing: `send` never raises.
            raise _NothingSent
        raise Unavailable(f"{name} fails by design")


class _NothingSent(Exception):
    """Tells the wrapper that a `send` acknowledged nothing."""


class _Interrupting:
    """A store or queue whose calls go through the world."""

    def __init__(self, inside: Any, world: Interrupted) -> None:  # noqa: ANN401 - any store
        self._inside = inside
        self._world = world

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - any attribute
        attribute = getattr(self._inside, name)
        if name not in PORTS:
            return attribute

        def called(*arguments: Any, **named: Any) -> Any:  # noqa: ANN401 - any call
            try:
                return self._world.make(name, lambda: attribute(*arguments, **named))
            except _NothingSent:
                return list(arguments[0])

        return called
