"""Answers about schedules and calendars before API 1.0, in the words of today: what is stored has not changed."""

from __future__ import annotations

from typing import Any

_SCHEDULE = {
    "note": "paused_reason",
    "changed_at": "updated_at",
    "placed": "runs_started",
    "skipped": "runs_skipped",
}
_CALENDAR = {"kind": "mode"}
_GONE = {"id"}
"""The name of a schedule, said twice."""


def in_words_of_today(path: str, answer: dict[str, Any]) -> dict[str, Any]:
    """What a list of schedules or calendars said then, as it says it now."""
    match path:
        case "/v1/schedules":
            return {**answer, "schedules": [_renamed(each, _SCHEDULE) for each in answer["schedules"]]}
        case "/v1/calendars":
            return {**answer, "calendars": [_renamed(each, _CALENDAR) for each in answer["calendars"]]}
        case _:
            return answer


def _renamed(entry: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    found = {names.get(name, name): value for name, value in entry.items() if name not in _GONE}
    if found.get("permanent") is not None:
        found["permanent"] = {"gap_seconds": found["permanent"]}
    return found
