"""`client.exports`: exports all of the caller's data as lines of JSON."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from duetime_client.io_operations import Item, Request
from duetime_client.pages import page
from duetime_client.problems import document_of
from duetime_client.resource import AsyncResource, Resource, Stream, SyncResource
from duetime_client.session import segment

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import httpx

    from duetime_client.io_operations import Items, Steps

CURSOR, END = "cursor", "end"
"""Kinds of lines without an object: a point from which an export can continue, and the end of the export."""


@dataclass(frozen=True, slots=True)
class _Part:
    """One kind of object.

    Attributes:
        entries: field of the list's responses that holds the objects; empty for a single object.
        query: parameters of the list.
        is_summarized: whether the list omits fields, so that each object must be read by name.
    """

    kind: str
    path: str
    entries: str = ""
    query: Sequence[tuple[str, str]] = ()
    is_summarized: bool = False


PARTS = (
    _Part("settings", "/v1/settings"),
    _Part("calendar", "/v1/calendars", "calendars", is_summarized=True),
    _Part("schedule", "/v1/schedules", "schedules", is_summarized=True),
    _Part("topology_definition", "/v1/topologies/definitions", "definitions", is_summarized=True),
    _Part("type", "/v1/types", "types"),
    _Part("switch", "/v1/switches", "switches"),
    # The order is ascending, so that tasks created during the export come last.
    _Part("task", "/v1/tasks", "tasks", [("expand", "payload,result"), ("order", "asc")]),
)
"""The parts of an export, in order."""


class InvalidCursor(ValueError):
    """The cursor was not created by an export of this client version."""


@dataclass(frozen=True, slots=True)
class ExportLine:
    """One line of an export.

    Attributes:
        kind: `settings`, `calendar`, `schedule`, `topology_definition`, `type`, `switch` or `task`; `cursor` after each
            page, with the value that continues the export from there; `end` at the end, with the number of lines that
            were read.
        value: the object as the API returns it.
    """

    kind: str
    value: Mapping[str, Any]

    @property
    def text(self) -> str:
        """The line as JSON, without a line break."""
        return json.dumps({"kind": self.kind, "value": self.value}, ensure_ascii=False, separators=(",", ":"))


class ExportOperations(Resource):
    """Exports."""

    @Stream
    def read(self, cursor: Mapping[str, Any] | None = None) -> Items[ExportLine]:
        """Yield the caller's settings, calendars, schedules, topology definitions, types, switches and tasks.

        Tasks include their payloads and results. Archived tasks, attempts and events are not included.

        Args:
            cursor: the value of the last line of kind `cursor`, to continue an export that was interrupted.

        Raises:
            InvalidCursor: the cursor does not come from an export.
        """
        first, token, count = _position(cursor)
        for number, part in enumerate(PARTS[first:], first):
            while True:
                found, token = yield from self._page(part, token)
                for value in found:
                    count += 1
                    yield Item(ExportLine(part.kind, value))
                position = {"part": part.kind if token else _following(number), "next_token": token, "lines": count}
                yield Item(ExportLine(CURSOR, position))
                if not token:
                    break
        yield Item(ExportLine(END, {"lines": count}))

    def _page(self, part: _Part, token: str) -> Steps[tuple[Sequence[Mapping[str, Any]], str]]:
        if not part.entries:
            value = yield from self._session.send(_get(part.path))
            return [value], ""
        found, token = yield from self._session.send(page(part.path, part.entries, _as_listed, part.query, token))
        if part.is_summarized:
            objects = []
            for each in found:
                objects.append((yield from self._session.send(_get(f"{part.path}/{segment(each['name'])}"))))  # noqa: PERF401 - no yield in a comprehension
            found = objects
        return found, token


def _following(number: int) -> str:
    return PARTS[number + 1].kind if number + 1 < len(PARTS) else END


def _position(cursor: Mapping[str, Any] | None) -> tuple[int, str, int]:
    """Return the number of a cursor's part, the token of its page, and the number of lines before it."""
    if cursor is None:
        return 0, "", 0
    kinds = [*(part.kind for part in PARTS), END]
    try:
        return kinds.index(cursor["part"]), str(cursor["next_token"]), int(cursor["lines"])
    except (KeyError, ValueError, TypeError) as error:
        raise InvalidCursor("this is not a cursor of an export") from error


def _get(path: str) -> Request[Mapping[str, Any]]:
    return Request("GET", path, _document)


def _document(response: httpx.Response) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", document_of(response))


def _as_listed(_response: httpx.Response, entry: object) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", entry)


class Exports(ExportOperations, SyncResource):
    """`client.exports` of `Client`."""


class AsyncExports(ExportOperations, AsyncResource):
    """`client.exports` of `AsyncClient`."""
