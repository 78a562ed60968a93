"""Encodes messages to WebSocket clients as text.

The message models are imported only for type checking, so that the function that pushes changes needs no pydantic.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from duetime.contract.http.problems import kind_of, problem_of
from duetime.domain.change_events import ScheduleSnapshot
from duetime.domain.limits import MAX_FRAME_BYTES
from duetime.domain.live_updates import version_of
from duetime.domain.times import to_iso

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.contract.live_updates import messages
    from duetime.domain.change_events import TaskSnapshot
    from duetime.domain.live_updates import Notice, Watched
    from duetime.domain.times import Millis

_START, _END = '{"kind":"change","changes":[', "]}"


class JsonEncoder:
    """Implements `duetime.ports.stores.MessageEncoder` with messages as JSON text."""

    def snapshot(self, ref: str, record: Watched | None) -> str:
        """The first message of a subscription."""
        version = 0 if record is None else version_of(record)
        item = None if record is None else item_of(record)
        frame: messages.SnapshotFrame = {"kind": "snapshot", "ref": ref, "version": version, "item": item}
        return _text(frame)

    def unsubscribed(self, ref: str) -> str:
        """Confirms the end of a subscription."""
        frame: messages.UnsubscribedFrame = {"kind": "unsubscribed", "ref": ref}
        return _text(frame)

    def pong(self, ref: str | None) -> str:
        """The response to a ping."""
        frame: messages.PongFrame = {"kind": "pong", "ref": ref}
        return _text(frame)

    def stale(self, refs: Sequence[str]) -> str:
        """Asks the client to read the subjects of some subscriptions again."""
        frame: messages.StaleFrame = {"kind": "stale", "refs": list(refs)}
        return _text(frame)

    def error(self, ref: str | None, error: Exception) -> str:
        """The rejection of a message."""
        problem = problem_of(error, "")
        frame: messages.ErrorFrame = {
            "kind": "error",
            "ref": ref,
            "code": kind_of(error).code,
            "detail": problem["detail"],
            "errors": problem["errors"],
        }
        return _text(frame)

    def changes(self, notices: Sequence[Notice]) -> list[str]:
        """Packs changes into as few messages as possible."""
        room = MAX_FRAME_BYTES - len(_START) - len(_END)
        found: list[list[str]] = []
        free = 0
        for entry in map(_entry, notices):
            # The additional 1 is for the comma before the entry. The JSON text is ASCII, so each character is one byte.
            if len(entry) + 1 > free:
                found.append([])
                free = room
            found[-1].append(entry)
            free -= len(entry) + 1
        return [f"{_START}{','.join(entries)}{_END}" for entries in found]


def item_of(record: Watched) -> messages.WatchedTask | messages.WatchedSchedule:
    """A record as shown to clients."""
    return _schedule(record) if isinstance(record, ScheduleSnapshot) else _task(record)


def _entry(notice: Notice) -> str:
    change = notice.change
    entry: messages.ChangeEntry = {
        "id": change.subject.name,
        "version": change.version,
        "refs": list(notice.refs),
        "left": list(notice.left),
        "item": None if change.after is None else item_of(change.after),
    }
    return _text(entry)


def _schedule(record: ScheduleSnapshot) -> messages.WatchedSchedule:
    return {
        "kind": "schedule",
        "name": record.name,
        "state": record.state,
        "runs_skipped": record.runs_skipped,
        "version": record.version,
    }


def _task(record: TaskSnapshot) -> messages.WatchedTask:
    progress, error, node = record.progress, record.error, record.node_ref
    return {
        "kind": "task",
        "id": record.id.text,
        "type": record.type,
        "name": record.name or None,
        "state": record.state,
        "due_at": to_iso(record.due_at),
        "created_at": to_iso(record.created_at),
        "started_at": _instant(record.started_at),
        "finished_at": _instant(record.finished_at),
        "priority": record.priority,
        "tags": dict(record.tags),
        "attempt": record.attempt,
        "progress": None if progress is None else {"percent": progress.percent, "message": progress.message},
        "error": None if error is None else {"type": error.type, "message": error.message},
        "schedule": None if record.schedule_ref is None else record.schedule_ref.schedule,
        "topology": None if node is None else node.topology.text,
        "node": None if node is None else node.key,
        "version": record.version,
    }


def _instant(at: Millis | None) -> str | None:
    return None if at is None else to_iso(at)


def _text(frame: object) -> str:
    return json.dumps(frame, separators=(",", ":"), allow_nan=False)
