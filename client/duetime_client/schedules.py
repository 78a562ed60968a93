"""`client.schedules`: recurring tasks."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Literal, TypeAlias, Unpack

from duetime_client.changes import watch
from duetime_client.explanations import ScheduleExplanation
from duetime_client.filter_actions import filter_action_results
from duetime_client.io_operations import Request
from duetime_client.pages import pages
from duetime_client.request_estimates import estimate_query
from duetime_client.resource import AsyncResource, Operation, Resource, Stream, SyncResource
from duetime_client.responses import one, read, several, task_of
from duetime_client.schedule_models import Backfill, Forecast, Occurrence, Schedule, ScheduleHistory, ScheduleRun
from duetime_client.session import IDEMPOTENCY_KEY, guard, key_or_random, segment
from duetime_client.task_creation import trace_headers
from duetime_client.task_request_fields import body_of, encoded

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import datetime

    from duetime_client.changes import Change
    from duetime_client.filter_actions import FilterActionResult
    from duetime_client.io_operations import Items
    from duetime_client.literals import RunStatus, ScheduleState
    from duetime_client.schedule_models import BackfillOverlap, ScheduleFields, TimingFields
    from duetime_client.task import Task

SCHEDULES = "/v1/schedules"
_OF_THE_SCHEDULE = object()
"""The value that means that no payload is given; `None` cannot mean this, because null is a valid payload."""
Backfills: TypeAlias = list[Backfill]
Occurrences: TypeAlias = list[Occurrence]


class ScheduleOperations(Resource):
    """Schedules, their runs and their backfills. Each schedule is addressed by its name."""

    @Operation
    def create(
        self,
        name: str | None = None,
        *,
        idempotency_key: str | None = None,
        traceparent: str | None = None,
        estimate: bool = False,
        **fields: Unpack[ScheduleFields],
    ) -> Request[Schedule]:
        """Create a schedule; without a name, the API generates one.

        A retried request never creates a second schedule, because it carries an idempotency key (random by default).
        `traceparent` (W3C Trace Context) is passed on to the schedule's runs. With `estimate`, the returned schedule
        includes the estimated cost of its runs in a month.

        Raises:
            Conflict: A schedule with this name exists.
        """
        body = {**({} if name is None else {"name": name}), **body_of(fields)}
        headers = {**_key(idempotency_key), **trace_headers(traceparent)}
        query = estimate_query(is_wanted=estimate)
        return Request("POST", SCHEDULES, one(Schedule), body=body, query=query, headers=headers)

    @Operation
    def get(self, name: str) -> Request[Schedule]:
        """Get a schedule with its next occurrences and recent skips."""
        return Request("GET", path_of(name), one(Schedule))

    @Stream
    def list(
        self,
        *,
        state: ScheduleState | Iterable[ScheduleState] = (),
        type: str | None = None,  # noqa: A002 - the API's name
        tags: Mapping[str, str] | None = None,
        name_prefix: str | None = None,
        page_size: int | None = None,
    ) -> Items[Schedule]:
        """List all schedules, or the schedules that match the filters, in order of name; pages are fetched as needed.

        Args:
            state: The state or states of the schedules.
            type: The type of the schedules' tasks.
            tags: The tags that the schedules' tasks must all have.
            name_prefix: The prefix of the schedules' names.
            page_size: The number of schedules per request.
        """
        states = [state] if isinstance(state, str) else state
        query = [
            *(("state", each) for each in states),
            *(("tag", f"{key}:{value}") for key, value in (tags or {}).items()),
            *_query({"type": type, "name_prefix": name_prefix, "limit": page_size}),
        ]
        return pages(self._session, SCHEDULES, "schedules", partial(read, Schedule), query)

    @Operation
    def get_forecast(self, *, hours: int | None = None) -> Request[Forecast]:
        """Get the runs planned for the next hours (default: 24), and the minutes in which several schedules start."""
        return Request("GET", "/v1/forecast", one(Forecast), query=[*_query({"hours": hours})])

    @Operation
    def update(
        self, name: str, /, *, reason: str = "", if_match: str | None = None, **changes: Unpack[ScheduleFields]
    ) -> Request[Schedule]:
        """Update a schedule; with `if_match`, only if it still has that `etag`. The reason is recorded.

        The fields of the schedule and its task are merged: `None` removes a field, and a new timing replaces the old
        timing. Queued occurrences are replaced.
        """
        body, query = body_of(changes), [*_query({"reason": reason or None})]
        return Request("PATCH", path_of(name), one(Schedule), body=body, query=query, headers=guard(if_match))

    @Operation
    def delete(self, name: str, *, if_match: str | None = None) -> Request[Schedule]:
        """Delete a schedule, and return the deleted schedule; its queued tasks will not run."""
        return Request("DELETE", path_of(name), one(Schedule), headers=guard(if_match))

    @Operation
    def pause(self, name: str, reason: str = "", *, if_match: str | None = None) -> Request[Schedule]:
        """Pause a schedule, with a reason; its queued tasks will not run."""
        return _action(name, "pause", if_match, {"reason": reason})

    @Operation
    def resume(self, name: str, *, reason: str = "", if_match: str | None = None) -> Request[Schedule]:
        """Resume a paused schedule from now on; occurrences that were due during the pause do not run."""
        return _action(name, "resume", if_match, {"reason": reason} if reason else None)

    @Stream
    def pause_by_tag(self, tags: Mapping[str, str], *, reason: str = "") -> Items[FilterActionResult]:
        """Pause every active schedule whose task has all of these tags.

        As with `tasks.cancel_by_filter`, nothing is sent before the first result is requested, and each result covers
        the time since the previous result.
        """
        return filter_action_results(self._session, f"{SCHEDULES}/pause", _by_tag(tags, reason))

    @Stream
    def resume_by_tag(self, tags: Mapping[str, str], *, reason: str = "") -> Items[FilterActionResult]:
        """Resume every paused schedule whose task has all of these tags; works like `pause_by_tag`."""
        return filter_action_results(self._session, f"{SCHEDULES}/resume", _by_tag(tags, reason))

    @Operation
    def update_occurrence(
        self,
        name: str,
        scheduled_at: datetime | str,
        action: Literal["skip", "move", "run_now", "restore"],
        *,
        due_at: datetime | str | None = None,
        reason: str = "",
        if_match: str | None = None,
    ) -> Request[Schedule]:
        """Skip a future occurrence, move it to `due_at`, run it now instead, or restore it."""
        body = {"scheduled_at": encoded(scheduled_at), "action": action, "due_at": encoded(due_at), "reason": reason}
        given = {key: value for key, value in body.items() if value}
        return _action(name, "occurrences/update", if_match, given)

    @Operation
    def list_events(self, name: str) -> Request[ScheduleHistory]:
        """Get the history of a schedule, oldest event first: who did what, when and why."""
        return Request("GET", f"{path_of(name)}/events", one(ScheduleHistory))

    @Operation
    def run(  # noqa: PLR0913 - a request's options are its parameters
        self,
        name: str,
        *,
        payload: object = _OF_THE_SCHEDULE,
        due_at: datetime | str | None = None,
        delay_seconds: float | None = None,
        reason: str = "",
        idempotency_key: str | None = None,
        if_match: str | None = None,
        traceparent: str | None = None,
    ) -> Request[Task]:
        """Run a schedule's task once, regardless of its timing; returns the task.

        The task is due now unless `due_at` or `delay_seconds` is given, and has the schedule's payload unless `payload`
        is given. A retried request never runs the task twice, because it carries an idempotency key (random by
        default). `traceparent` (W3C Trace Context) is passed on to the task's handler or target, and to its callback.
        """
        headers = {**_key(idempotency_key), **guard(if_match), **trace_headers(traceparent)}
        given = {"due_at": due_at, "delay_seconds": delay_seconds, "reason": reason or None}
        body = {key: encoded(value) for key, value in given.items() if value is not None}
        if payload is not _OF_THE_SCHEDULE:
            body["payload"] = encoded(payload)
        return Request("POST", f"{path_of(name)}/run", task_of, body=body or None, headers=headers)

    @Operation
    def create_backfill(  # noqa: PLR0913 - a request's options are its parameters
        self,
        name: str,
        scheduled_after: datetime | str,
        scheduled_before: datetime | str,
        *,
        per_minute: int | None = None,
        only_missing: bool | None = None,
        overlap: BackfillOverlap | None = None,
        idempotency_key: str | None = None,
        if_match: str | None = None,
    ) -> Request[Backfill]:
        """Run the occurrences of a past period (end exclusive) at a limited number per minute.

        Occurrences that already have a run are skipped, unless `only_missing` is false. With `overlap` `buffer_all`,
        each run waits until no other run of the schedule is active.

        A retried request never begins a second backfill, because it carries an idempotency key (random by default).
        """
        body = {"scheduled_after": encoded(scheduled_after), "scheduled_before": encoded(scheduled_before)}
        options = {"per_minute": per_minute, "only_missing": only_missing, "overlap": overlap}
        body |= {name: value for name, value in options.items() if value is not None}
        headers = {**_key(idempotency_key), **guard(if_match)}
        return Request("POST", f"{path_of(name)}/backfills", one(Backfill), body=body, headers=headers)

    @Operation
    def list_backfills(self, name: str) -> Request[Backfills]:
        """List the running and the latest finished backfills of a schedule."""
        return Request("GET", f"{path_of(name)}/backfills", several(Backfill, "backfills"))

    @Operation
    def get_backfill(self, name: str, backfill_id: str) -> Request[Backfill]:
        """Get a backfill of a schedule with its progress."""
        return Request("GET", _backfill_path(name, backfill_id), one(Backfill))

    @Operation
    def cancel_backfill(self, name: str, backfill_id: str) -> Request[Backfill]:
        """Cancel a backfill; tasks that it has already created still run."""
        return Request("DELETE", _backfill_path(name, backfill_id), one(Backfill))

    @Operation
    def list_occurrences(
        self,
        name: str,
        *,
        scheduled_after: datetime | str | None = None,
        scheduled_before: datetime | str | None = None,
        limit: int | None = None,
    ) -> Request[Occurrences]:
        """List occurrences with their tasks in time order; past occurrences only if `scheduled_after` is in the past.

        Occurrences at `scheduled_after` are included, and occurrences at `scheduled_before` are not.
        """
        bounds = {"scheduled_after": scheduled_after, "scheduled_before": scheduled_before}
        query = [*_query({**bounds, "limit": limit})]
        return Request("GET", f"{path_of(name)}/occurrences", several(Occurrence, "occurrences"), query=query)

    @Stream
    def list_runs(
        self,
        name: str,
        *,
        status: RunStatus | Iterable[RunStatus] = (),
        scheduled_after: datetime | str | None = None,
        scheduled_before: datetime | str | None = None,
        page_size: int | None = None,
    ) -> Items[ScheduleRun]:
        """List past and planned runs over the schedule's life, newest first; pages are fetched as needed.

        Planned runs come first, unless `status` selects others. Runs that were scheduled for `scheduled_after` are
        included, and runs for `scheduled_before` are not.
        """
        bounds = {"scheduled_after": scheduled_after, "scheduled_before": scheduled_before}
        query = [*_query({**bounds, "limit": page_size})]
        query += [("status", each) for each in ([status] if isinstance(status, str) else status)]
        return pages(self._session, f"{path_of(name)}/runs", "runs", partial(read, ScheduleRun), query)

    @Operation
    def preview(
        self,
        *,
        start: datetime | str | None = None,
        count: int | None = None,
        name: str | None = None,
        **timing: Unpack[TimingFields],
    ) -> Request[Occurrences]:
        """Preview the occurrences of a timing after `start`, and whether each would run; nothing is created.

        `name` is the name of the future schedule, which determines the effect of `spread_seconds`.
        """
        asked = {"from": encoded(start), "count": count, "name": name}
        body = {**body_of(timing), **{key: value for key, value in asked.items() if value is not None}}
        decode = several(Occurrence, "occurrences")
        return Request("POST", f"{SCHEDULES}/preview", decode, body=body, repeatable=True)

    @Operation
    def explain(self, name: str, at: datetime | str | None = None) -> Request[ScheduleExplanation]:
        """Explain why a schedule did or did not run at a time; a time without seconds means any time in that minute.

        Without a time, the explanation is about the latest occurrence.

        Raises:
            TimeWithoutZone: The time has no zone.
        """
        return Request("GET", f"{path_of(name)}/explain", one(ScheduleExplanation), query=[*_query({"at": at})])

    @Stream
    def watch(self, name: str) -> Items[Change]:
        """Yield changes to a schedule and its runs as they happen; see `tasks.watch`."""
        return watch(self._session, f"schedule:{name}", {})


class Schedules(ScheduleOperations, SyncResource):
    """`client.schedules` of `Client`."""


class AsyncSchedules(ScheduleOperations, AsyncResource):
    """`client.schedules` of `AsyncClient`."""


def path_of(name: str) -> str:
    """The path of a schedule; the name is escaped as one path segment."""
    return f"{SCHEDULES}/{segment(name)}"


def _action(
    name: str, action: str, if_match: str | None, body: Mapping[str, object] | None = None
) -> Request[Schedule]:
    return Request("POST", f"{path_of(name)}/{action}", one(Schedule), body=body, headers=guard(if_match))


def _key(idempotency_key: str | None) -> dict[str, str]:
    return {IDEMPOTENCY_KEY: key_or_random(idempotency_key)}


def _query(parameters: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    return ((name, str(encoded(value))) for name, value in parameters.items() if value is not None)


def _by_tag(tags: Mapping[str, str], reason: str) -> dict[str, object]:
    return {"filter": {"tags": dict(tags)}, **({"reason": reason} if reason else {})}


def _backfill_path(name: str, backfill_id: str) -> str:
    return f"{path_of(name)}/backfills/{segment(backfill_id)}"
