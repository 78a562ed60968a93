"""Applies the steps for a file of schedules, several steps at a time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from threading import Event
from typing import TYPE_CHECKING, TypeVar

from duetime_client.errors import ClientError, Conflict, NotFound, Unreachable
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
"""The maximum number of concurrent requests."""
_EXISTS = "schedule_exists"
_PREVIEWED = frozenset(
    {
        *TIMINGS,
        *("dialect", "timezone", "dst_gap", "dst_fold", "calendars", "on_excluded", "jitter_seconds"),
        *("extra_dates", "excluded_dates", "spread_seconds", "start_at", "end_at", "remaining_runs", "name"),
    }
)


@dataclass(frozen=True, slots=True)
class Done:
    """The result of a step: applied, failed with an error, or not tried."""

    step: Step
    error: ClientError | None = None
    tried: bool = True


def apply_steps(
    client: Client, steps: Sequence[Step], on_done: Callable[[Done], object], *, only_check: bool = False
) -> list[Done]:
    """Apply each step.

    A rejected step does not stop other steps; if the API does not respond, the steps that are left are not tried.

    Args:
        client: The client to use; shared by threads.
        steps: The steps to apply.
        on_done: Called with the result of each step.
        only_check: Let the API validate each timing, and change nothing.
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

    return list(_several(one, steps, on_done))


def present_schedules(client: Client, entries: Iterable[Entry]) -> dict[str, Schedule]:
    """Return the existing schedules by name; schedules that an entry would update are read one by one.

    A list may be slightly out of date, and omits large payloads.
    """
    listed = {schedule.name: schedule for schedule in client.schedules.list()}
    known = [each for each in entries if each.name in listed]
    unsure = [each.name for each in known if step_of(each, listed[each.name]).action is Action.UPDATE]

    def complete(name: str) -> Schedule | None:
        try:
            return client.schedules.get(name)
        except NotFound:
            return None

    found = dict(zip(unsure, _several(complete, unsure, lambda _: None), strict=True))
    return {name: now for name, was in listed.items() if (now := found.get(name, was)) is not None}


def _several(act: Callable[[S], D], wanted: Iterable[S], on_done: Callable[[D], object]) -> Iterator[D]:
    """Call a function for many values, a few at a time, and yield the results in order."""
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for done in pool.map(act, wanted):
            on_done(done)
            yield done


def _do(client: Client, step: Step) -> None:
    match step.action:
        case Action.CREATE:
            _create(client, step)
        case Action.UPDATE:
            client.schedules.update(step.name, if_match=step.etag, **(step.fields or {}))
        case Action.DELETE:
            _delete(client, step)
        case _:
            pass


def _create(client: Client, step: Step) -> None:
    fields = step.fields or {}
    try:
        client.schedules.create(step.name, **fields)
    except Conflict as error:
        if error.code != _EXISTS:
            raise
        # The list may not show a new schedule yet, or the response to an earlier create request was lost.
        _do(client, step_of(Entry(step.line, step.name, fields), client.schedules.get(step.name)))


def _delete(client: Client, step: Step) -> None:
    try:
        client.schedules.delete(step.name, if_match=step.etag)
    except NotFound:
        # Already deleted by another client, or by an earlier request whose response was lost.
        return


def _check(client: Client, step: Step) -> None:
    if step.action not in {Action.CREATE, Action.UPDATE} or not any(name in TIMINGS for name in step.fields or {}):
        return
    timing = {name: value for name, value in (step.fields or {}).items() if name in _PREVIEWED}
    client.schedules.preview(count=1, **timing)
