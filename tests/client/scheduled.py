"""A deployment that keeps schedules and calendars in memory and implements the API's contract."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from urllib.parse import unquote, urlsplit

from tests.client.deployment import Answer, Deployment, problem

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tests.client.deployment import Received

PAGE = 2
TIMINGS = ("cron", "rate", "interval", "dates", "permanent", "timings")
DEFAULTS: dict[str, Any] = {
    **dict.fromkeys(TIMINGS),
    "dialect": "cron",
    "timezone": "UTC",
    "dst_gap": "skip",
    "dst_fold": "first",
    "calendars": [],
    "on_excluded": "skip",
    "extra_dates": [],
    "excluded_dates": [],
    "spread_seconds": 0,
    "jitter_seconds": 0,
    "start_at": None,
    "end_at": None,
    "remaining_runs": None,
    "overlap": "skip",
    "catch_up_seconds": 3600,
    "catch_up_mode": "latest",
    "pause_on_failure": False,
    "expect_success_by": None,
    "expect_every_seconds": None,
    "expect_duration_factor": None,
}
TASK: dict[str, Any] = {
    "payload": None,
    "priority": "normal",
    "target": None,
    "retry": {"max_attempts": 5, "initial_seconds": 1.0, "multiplier": 2.0, "max_seconds": 300.0},
    "timeout_seconds": 60,
    "notify_within_seconds": 3600,
    "rollback_on_failure": False,
    "lock": None,
    "rate": None,
    "callback_url": None,
    "notify_on": None,
    "name": None,
    "tags": {},
}
UPCOMING = [
    {
        "scheduled_at": "2026-11-22T01:30:00.000Z",
        "local_time": "2026-11-22T01:30:00+00:00",
        "runs": True,
        "due_at": "2026-11-22T01:30:00.000Z",
        "note": None,
    },
    {
        "scheduled_at": "2026-11-23T01:30:00.000Z",
        "local_time": "2026-11-23T01:30:00+00:00",
        "runs": False,
        "due_at": None,
        "note": "uk: 2026-11-23 (Holiday): skipped",
    },
    {
        "scheduled_at": "2026-11-24T01:30:00.000Z",
        "local_time": "2026-11-24T01:30:00+00:00",
        "runs": True,
        "due_at": "2026-11-24T08:00:00.000Z",
        "note": "uk: 22:00 to 08:00: moved to 2026-11-24T08:00:00+00:00",
    },
]
BACKFILL: dict[str, Any] = {
    "id": "1a2b",
    "scheduled_after": "2026-11-01T00:00:00.000Z",
    "scheduled_before": "2026-11-20T00:00:00.000Z",
    "per_minute": 6,
    "only_missing": True,
    "overlap": "allow_all",
    "occurrences": 19,
    "runs_started": 3,
    "runs_known": 0,
    "finished_at": None,
}
SEEN = [
    {**UPCOMING[0], "scheduled_at": "2026-11-21T01:30:00.000Z", "task_id": "01TASK", "state": "succeeded"},
    {**UPCOMING[1], "task_id": None, "state": None},
]


def backfills(method: str, action: str) -> Answer:
    """Handle a request for backfills; every response contains the same backfill."""
    if action == "backfills":
        return Answer(201, BACKFILL) if method == "POST" else Answer(200, {"backfills": [BACKFILL]})
    finished = None if method == "GET" else "2026-11-21T12:00:00.000Z"
    return Answer(200, {**BACKFILL, "finished_at": finished})


class ScheduledDeployment(Deployment):
    """Implements schedules and calendars in memory, by name."""

    def __init__(self) -> None:
        super().__init__()
        self.schedules: dict[str, dict[str, Any]] = {}
        self.calendars: dict[str, dict[str, Any]] = {}

    def answer(self, request: Received) -> Answer:
        """Return the deployment's response to a request."""
        path = urlsplit(request.target).path.removeprefix("/stage/v1/")
        kind, *rest = path.split("/")
        if self.scripted or kind not in {"schedules", "calendars"}:
            return super().answer(request)
        self.received.append(request)
        names = [unquote(each) for each in rest]
        return self.scheduled(request, names) if kind == "schedules" else self.calendar(request, names)

    def scheduled(self, request: Received, names: list[str]) -> Answer:
        """Handle a request for schedules."""
        match request.method, names:
            case "POST", []:
                return self.created(request.document)
            case "GET", []:
                return self.listed("schedules", self.schedules, request.query)
            case "POST", ["preview"]:
                return self.previewed(request.document)
            case "POST", ["pause" | "resume"]:
                return Answer(200, {"examined": 9, "matched": 2, "affected": 2, "refused": {}, "next_token": None})
            case method, [name, *action] if name in self.schedules:
                return self.controlled_schedule(method, name, "/".join(action), request)
            case _:
                return problem(404, "schedule_not_found", "there is no such schedule")

    def created(self, body: Mapping[str, Any]) -> Answer:
        """Create a schedule, unless another schedule has the same name."""
        name = body.get("name", "made-up")
        if name in self.schedules:
            return problem(409, "schedule_exists", f"the schedule {name!r} already exists")
        if bad := self.fault_of(body):
            return bad
        times = {"created_at": "2026-11-21T11:00:00.000Z", "next_at": "2026-11-22T01:30:00.000Z"}
        whole = {**DEFAULTS, **body, "task": {**TASK, **body["task"]}}
        kept = {"name": name, "state": "active", "paused_reason": None, "revision": 1, "version": 1, **times}
        self.schedules[name] = {**kept, **whole, "name": name}
        return self.one_schedule(name, 201)

    def fault_of(self, body: Mapping[str, Any]) -> Answer | None:
        """Return a rejection if the API would also reject the request, otherwise `None`."""
        if body.get("cron") == "bad":
            fault = {"field": "cron", "reason": "should have 5 fields"}
            return problem(422, "fields_invalid", "cron: should have 5 fields", fault)
        return None

    def previewed(self, body: Mapping[str, Any]) -> Answer:
        """Return a fixed preview, unless the timing is invalid."""
        count = body.get("count", len(UPCOMING))
        return self.fault_of(body) or Answer(200, {"occurrences": UPCOMING[:count]})

    def controlled_schedule(self, method: str, name: str, action: str, request: Received) -> Answer:
        """Handle a request for a schedule or for a resource below a schedule."""
        if action.startswith("backfills"):
            return backfills(method, action)
        schedule = self.schedules[name]
        etag = f'"{schedule["version"]}"'
        if request.headers.get("If-Match", etag) != etag:
            return problem(412, "version_mismatch", "the schedule has changed")
        match method, action:
            case "GET", "":
                pass
            case _, "occurrences":
                return Answer(200, {"occurrences": SEEN})
            case "PATCH", _:
                return self.updated(schedule, request.document) or self.one_schedule(name)
            case "DELETE", "":
                return Answer(200, self.schedules.pop(name))
            case _, "run":
                return Answer(201, self.create({"type": schedule["task"]["type"]}, "run"))
            case _, "pause":
                schedule |= {"state": "paused", "paused_reason": request.document["reason"] or None}
            case _, "resume":
                schedule |= {"state": "active", "paused_reason": None}
        return self.one_schedule(name)

    def updated(self, schedule: dict[str, Any], given: Mapping[str, Any]) -> Answer | None:
        """Merge an update into a schedule if the update is valid."""
        if bad := self.fault_of(given):
            return bad
        gone = dict.fromkeys(TIMINGS) if set(given) & set(TIMINGS) else {}
        task = {"task": {**schedule["task"], **given["task"]}} if "task" in given else {}
        schedule |= {**gone, **given, **task, "version": schedule["version"] + 1}
        return None

    def one_schedule(self, name: str, status: int = 200) -> Answer:
        """Return all fields of a schedule."""
        schedule = self.schedules[name]
        reason = "the run of 01TASK is still running"
        skipped = [{"recorded_at": "2026-11-21T11:30:00.000Z", "local_time": None, "reason": reason}]
        more = {"upcoming": UPCOMING, "last_run": None, "skipped_runs": skipped, "backfills": [BACKFILL]}
        return Answer(status, {**schedule, **more}, {"ETag": f'"{schedule["version"]}"'})

    def listed(self, kind: str, entries: Mapping[str, Any], query: Mapping[str, list[str]]) -> Answer:
        """Return one page of a list."""
        start = int(query.get("next_token", ["0"])[0])
        every = [entries[name] for name in sorted(entries)]
        token = str(start + PAGE) if len(every) > start + PAGE else None
        return Answer(200, {kind: every[start : start + PAGE], "next_token": token})

    def calendar(self, request: Received, names: list[str]) -> Answer:
        """Handle a request for calendars."""
        if not names:
            return self.listed("calendars", self.calendars, request.query)
        (name,) = names
        if request.method == "PUT":
            empty: dict[str, Any] = {"dates": {}, "except_dates": [], "weekdays": [], "windows": [], "spans": []}
            is_file = request.headers["Content-Type"] == "text/calendar"
            of_file = {"dates": {"2026-12-25": "Christmas Day"}, "known_until": "2028-11-22T23:00:00.000Z"}
            body = of_file if is_file else request.document
            self.calendars[name] = {"name": name, "mode": "excludes", "timezone": "UTC", **empty, **body}
        if name not in self.calendars:
            return problem(404, "calendar_not_found", f"there is no calendar {name!r}")
        calendar = self.calendars.pop(name) if request.method == "DELETE" else self.calendars[name]
        return Answer(200, calendar, {"ETag": '"1"'})
