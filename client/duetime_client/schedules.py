"""The part of the client that keeps schedules: work that recurs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Unpack
from urllib.parse import quote
from uuid import uuid4

from duetime_client.lock_admin import read
from duetime_client.pages import pages
from duetime_client.problems import document_of, unexpected_response
from duetime_client.responses import task_of
from duetime_client.schedule_models import Backfill, Occurrence, Schedule, ScheduleHistory, ScheduleRun
from duetime_client.task_fields import body_of, encoded
from duetime_client.transport import IDEMPOTENCY_KEY, guard

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from datetime import datetime

    import httpx

    from duetime_client.schedule_models import ScheduleFields, TimingFields
    from duetime_client.task import Task
    from duetime_client.transport import Transport

SCHEDULES = "/v1/schedules"


class Schedules:
    """The client's methods for schedules. Each is addressed by its name."""

    _transport: Transport

    def create_schedule(
        self, name: str | None = None, *, idempotency_key: str | None = None, **fields: Unpack[ScheduleFields]
    ) -> Schedule:
        """Create a schedule; without a name, the API generates one.

        A retried request never creates a second schedule: it carries an idempotency key, by default a random one.

        Raises:
            Conflict: There is one of this name.
        """
        body = {**({} if name is None else {"name": name}), **body_of(fields)}
        return _schedule(self._transport.request("POST", SCHEDULES, body=body, headers=_headers(idempotency_key)))

    def get_schedule(self, name: str) -> Schedule:
        """One schedule, with its next occurrences and recent skips."""
        return _schedule(self._transport.request("GET", path_of(name)))

    def list_schedules(self, *, state: str | None = None, page_size: int | None = None) -> Iterator[Schedule]:
        """All schedules, or those in one state, by name, page by page."""
        query = [("state", state)] if state else []
        query += [("limit", str(page_size))] if page_size else []
        for response, entry in pages(self._transport, SCHEDULES, "schedules", query):
            yield read(Schedule, response, entry)

    def update_schedule(
        self, name: str, /, *, reason: str = "", if_match: str | None = None, **changes: Unpack[ScheduleFields]
    ) -> Schedule:
        """Update a schedule; with `if_match`, only if it still has that `etag`. The reason is recorded.

        The fields are merged, also those of the task: nothing (None) removes one, and another timing
        replaces the one before. Queued occurrences are replaced.
        """
        query = [("reason", reason)] if reason else []
        body, headers = body_of(changes), guard(if_match)
        return _schedule(self._transport.request("PATCH", path_of(name), body=body, query=query, headers=headers))

    def delete_schedule(self, name: str, *, if_match: str | None = None) -> Schedule:
        """Delete a schedule; its queued tasks will not run. Returns it as it was."""
        return _schedule(self._transport.request("DELETE", path_of(name), headers=guard(if_match)))

    def pause_schedule(self, name: str, reason: str = "", *, if_match: str | None = None) -> Schedule:
        """Pause a schedule, with a reason; its queued tasks will not run."""
        return self._steer_schedule(name, "pause", if_match, {"reason": reason})

    def resume_schedule(self, name: str, *, reason: str = "", if_match: str | None = None) -> Schedule:
        """Resume a paused schedule from now on; occurrences during the pause are not caught up."""
        return self._steer_schedule(name, "resume", if_match, {"reason": reason} if reason else None)

    def list_schedule_events(self, name: str) -> ScheduleHistory:
        """What was done to a schedule, oldest event first: by whom, when and why."""
        response = self._transport.request("GET", f"{path_of(name)}/events")
        return read(ScheduleHistory, response, document_of(response))

    def run_schedule(
        self, name: str, *, reason: str = "", idempotency_key: str | None = None, if_match: str | None = None
    ) -> Task:
        """Run a schedule's task once, now, regardless of its timing; returns the task.

        A retried request never runs it twice: it carries an idempotency key, by default a random one.
        """
        headers = {**_headers(idempotency_key), **guard(if_match)}
        body = {"reason": reason} if reason else None
        return task_of(self._transport.request("POST", f"{path_of(name)}/run", body=body, headers=headers))

    def create_backfill(
        self,
        name: str,
        start: datetime | str,
        end: datetime | str,
        *,
        per_minute: int | None = None,
        idempotency_key: str | None = None,
        if_match: str | None = None,
    ) -> Backfill:
        """Run the occurrences of a past period, its end excluded, a number of them per minute.

        A retried request never begins a second backfill: it carries an idempotency key, by default a random one.
        """
        body = {"scheduled_after": encoded(start), "scheduled_before": encoded(end)}
        pace = {} if per_minute is None else {"per_minute": per_minute}
        headers = {**_headers(idempotency_key), **guard(if_match)}
        response = self._transport.request("POST", f"{path_of(name)}/backfills", body={**body, **pace}, headers=headers)
        return read(Backfill, response, document_of(response))

    def list_backfills(self, name: str) -> list[Backfill]:
        """The backfills of a schedule: those on their way, and the latest that have finished."""
        response = self._transport.request("GET", f"{path_of(name)}/backfills")
        match document_of(response):
            case {"backfills": list() as found}:
                return [read(Backfill, response, each) for each in found]
            case _:
                raise unexpected_response(response, "no backfills in the response")

    def get_backfill(self, name: str, backfill_id: str) -> Backfill:
        """One backfill of a schedule, as far as it has come."""
        response = self._transport.request("GET", _backfill_path(name, backfill_id))
        return read(Backfill, response, document_of(response))

    def cancel_backfill(self, name: str, backfill_id: str) -> Backfill:
        """Cancel a backfill; tasks that it has created still run."""
        response = self._transport.request("DELETE", _backfill_path(name, backfill_id))
        return read(Backfill, response, document_of(response))

    def list_occurrences(
        self,
        name: str,
        *,
        start: datetime | str | None = None,
        end: datetime | str | None = None,
        limit: int | None = None,
    ) -> list[Occurrence]:
        """Occurrences with their tasks, in order of time: past ones if `start` is past, and future ones.

        Those at `start` are included, those at `end` are not.
        """
        bounds = {"scheduled_after": start, "scheduled_before": end, "limit": limit}
        query = [(key, str(encoded(value))) for key, value in bounds.items() if value is not None]
        return _occurrences(self._transport.request("GET", f"{path_of(name)}/occurrences", query=query))

    def list_schedule_runs(
        self,
        name: str,
        *,
        due_after: datetime | str | None = None,
        due_before: datetime | str | None = None,
        page_size: int | None = None,
    ) -> Iterator[ScheduleRun]:
        """What became of the occurrences, newest first, over the schedule's life; fetched as they are needed.

        The next occurrences come first, as planned. Runs due at `due_after` are included, those at `due_before` are
        not.
        """
        bounds = {"due_after": due_after, "due_before": due_before, "limit": page_size}
        query = [(key, str(encoded(value))) for key, value in bounds.items() if value is not None]
        for response, entry in pages(self._transport, f"{path_of(name)}/runs", "runs", query):
            yield read(ScheduleRun, response, entry)

    def preview_schedule(
        self, *, start: datetime | str | None = None, count: int | None = None, **timing: Unpack[TimingFields]
    ) -> list[Occurrence]:
        """The next occurrences of a timing after `start`, each with its decision. Creates nothing."""
        asked = {"from": encoded(start), "count": count}
        body = {**body_of(timing), **{key: value for key, value in asked.items() if value is not None}}
        return _occurrences(self._transport.request("POST", f"{SCHEDULES}/preview", body=body, repeatable=True))

    def _steer_schedule(
        self, name: str, action: str, if_match: str | None, body: Mapping[str, object] | None = None
    ) -> Schedule:
        path, headers = f"{path_of(name)}/{action}", guard(if_match)
        return _schedule(self._transport.request("POST", path, body=body, headers=headers))


def path_of(name: str) -> str:
    """The path of a schedule; the name is one segment of it, whatever characters it has."""
    return f"{SCHEDULES}/{quote(name, safe='', errors='replace')}"


def _headers(idempotency_key: str | None) -> dict[str, str]:
    return {IDEMPOTENCY_KEY: idempotency_key or str(uuid4())}


def _backfill_path(name: str, backfill_id: str) -> str:
    return f"{path_of(name)}/backfills/{quote(backfill_id, safe='', errors='replace')}"


def _schedule(response: httpx.Response) -> Schedule:
    return read(Schedule, response, document_of(response))


def _occurrences(response: httpx.Response) -> list[Occurrence]:
    match document_of(response):
        case {"occurrences": list() as found}:
            return [read(Occurrence, response, each) for each in found]
        case _:
            raise unexpected_response(response, "no occurrences in the response")
