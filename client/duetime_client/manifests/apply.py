"""Carries out the steps that a file of schedules asks for, several at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING, TypeVar

from duetime_client.errors import ClientError, Conflict, TaskNotFound, Unreachable
from duetime_client.manifests.differences import TIMINGS, Action, step_of
from duetime_client.manifests.reader import Entry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from duetime_client.client import Client
    from duetime_client.manifests.differences import Step
    from duetime_client.schedule_models import Schedule

S = TypeVar("S")
D = TypeVar("D")
AT_ONCE = 8
"""Requests that are under way at once."""
_EXISTS = "schedule_exists"
_PREVIEWED = frozenset(
    {
        *TIMINGS,
        *("dialect", "timezone", "dst_gap", "dst_fold", "calendars", "on_excluded", "jitter_seconds"),
        *("start_at", "end_at", "remaining_runs"),
    }
)


@dataclass(frozen=True, slots=True)
class Done:
    """What became of a step: it was carried out, or an error says why not. A step that was not tried has neither."""

    step: Step
    error: ClientError | None = None
    tried: bool = True


def carry_out(
    client: Client, steps: Sequence[Step], tell: Callable[[Done], object], *, only_check: bool = False
) -> list[Done]:
    """Do each step; one that is refused stops no other, but where nobody answers the rest is not tried.

    Args:
        client: Of the deployment; threads share it.
        steps: What to do.
        tell: Hears of each step when it is done.
        only_check: Have the API judge each timing, and change nothing.
    """
    unreachable = Event()
    act = _check if only_check else _do

    def one(step: Step) -> Done:
        if unreachable.is_set():
            return Done(step, tried=False)
        try:
            act(client, step)
        except ClientError as error:
            if isinstance(error, Unreachable):
                unreachable.set()
            return Done(step, error)
        return Done(step)

    return list(_several(one, steps, tell))


def present_schedules(client: Client, entries: Iterable[Entry]) -> dict[str, Schedule]:
    """The schedules that there are, by name; those that an entry would change are read by themselves.

    A list may be a moment behind, and leaves out large payloads.
    """
    listed = {schedule.name: schedule for schedule in client.list_schedules()}
    known = [each for each in entries if each.name in listed]
    unsure = [each.name for each in known if step_of(each, listed[each.name]).action is Action.CHANGE]

    def whole(name: str) -> Schedule | None:
        try:
            return client.get_schedule(name)
        except TaskNotFound:
            return None

    found = dict(zip(unsure, _several(whole, unsure, lambda _: None), strict=True))
    return {name: now for name, was in listed.items() if (now := found.get(name, was)) is not None}


def _several(act: Callable[[S], D], wanted: Iterable[S], tell: Callable[[D], object]) -> Iterator[D]:
    """Do many things, a few at once, in order."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for done in pool.map(act, wanted):
            tell(done)
            yield done


def _do(client: Client, step: Step) -> None:
    match step.action:
        case Action.CREATE:
            _create(client, step)
        case Action.CHANGE:
            client.change_schedule(step.name, if_match=step.etag, **(step.fields or {}))
        case Action.DELETE:
            _delete(client, step.name)
        case _:
            pass


def _create(client: Client, step: Step) -> None:
    fields = step.fields or {}
    try:
        client.create_schedule(step.name, **fields)
    except Conflict as error:
        if error.code != _EXISTS:
            raise
        # A list tells of a schedule a moment after it is there, and an answer may have been lost.
        _do(client, step_of(Entry(step.line, step.name, fields), client.get_schedule(step.name)))


def _delete(client: Client, name: str) -> None:
    try:
        client.delete_schedule(name)
    except TaskNotFound:
        # Somebody was faster, or the answer to the first request was lost: it is gone.
        return


def _check(client: Client, step: Step) -> None:
    if step.action not in {Action.CREATE, Action.CHANGE} or not any(name in TIMINGS for name in step.fields or {}):
        return
    timing = {name: value for name, value in (step.fields or {}).items() if name in _PREVIEWED}
    client.preview_schedule(count=1, **timing)
