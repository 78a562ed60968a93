"""Requests of the largest size that the API accepts, full of the repeated and nested units that are hardest to parse.

Each kind of text that an owner writes and that Duetime parses or evaluates has a form here, with the length that the
API accepts and the units to repeat in the text.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from duetime.domain.limits import (
    MAX_CALENDAR_BYTES,
    MAX_CONDITION_LENGTH,
    MAX_EXPRESSION_LENGTH,
    MAX_PAYLOAD_BYTES,
    MAX_URL_LENGTH,
    MAX_ZONE_LENGTH,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from tests.functions.api.gateway import Answer, Gateway

HEADER_BYTES = 8_000
"""The maximum size of a header.

Source: API Gateway quotas for HTTP APIs (at most 10,240 bytes for all headers together).
"""


@dataclass(frozen=True)
class Form:
    """A kind of text.

    Attributes:
        most: the maximum length of the text, in characters.
        send: sends a request that contains the text.
        units: the parts of which such texts consist.
    """

    most: int
    send: Callable[[Gateway, str], Answer]
    units: tuple[str, ...]

    def bomb(self, before: str, unit: str, after: str) -> str:
        """The longest possible text that repeats a unit between a beginning and an end."""
        return before + unit * ((self.most - len(before) - len(after)) // max(1, len(unit))) + after


@dataclass(frozen=True)
class _Body:
    """Sends a string within a JSON body."""

    method: str
    path: str
    body: Callable[[str], Mapping[str, Any]]

    def __call__(self, api: Gateway, text: str) -> Answer:
        return api.send(self.method, self.path, self.body(text))


@dataclass(frozen=True)
class _Raw:
    """Sends a string as a body, or as a part of a body."""

    method: str
    path: str
    body: str = "%s"
    headers: Mapping[str, str] = field(default_factory=dict)

    def __call__(self, api: Gateway, text: str) -> Answer:
        return api.send(self.method, self.path, None, self.headers, raw=self.body.replace("%s", text))


def _calendar(text: str) -> str:
    return f"BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:x\r\n{text}END:VCALENDAR\r\n"


def _preview(**fields: Any) -> Callable[[str], Mapping[str, Any]]:  # noqa: ANN401 - JSON
    """A schedule preview in which the text replaces `TEXT`."""
    return lambda text: {**json.loads(json.dumps(fields).replace('"TEXT"', json.dumps(text))), "count": 100}


def _node(**fields: str) -> Callable[[str], Mapping[str, Any]]:
    """A topology whose second node has the text in a field."""

    def body(text: str) -> Mapping[str, Any]:
        told = {name: {"over": text} if name == "map" else text for name in fields}
        return {"nodes": {"l": {"type": "a"}, "a": {"type": "a", "depends_on": ["l"], **told}}}

    return body


def _header(name: str) -> Callable[[Gateway, str], Answer]:
    return lambda api, text: api.send("POST", "/v1/tasks", {"type": "a"}, {name: text})


def _query(name: str) -> Callable[[Gateway, str], Answer]:
    return lambda api, text: api.send("GET", "/v1/tasks", query=f"{name}={text}")


_PREVIEW = "/v1/schedules/preview"


def _wait(text: str) -> Mapping[str, Any]:
    """A task that waits for a signal that meets a condition."""
    return {"type": "a", "target": {"kind": "wait_for_event", "event": "a", "when": text}}


_EXPRESSION = (
    "parents.l.result",
    "|[@,@]",
    "[0]",
    "a.",
    "*.",
    "[]",
    "[?a]",
    "[?",
    "!",
    "(",
    "{a:",
    "`1`",
    "&&a",
    "length(",
)
FORMS: Mapping[str, Form] = {
    "json": Form(
        MAX_PAYLOAD_BYTES,
        _Raw("POST", "/v1/tasks", '{"type":"a","payload":%s}'),
        (
            "[",
            "]",
            "{",
            '{"a":',
            "}",
            '"',
            "\\",
            '"\\"',
            "1",
            "-",
            "0.",
            "1e9",
            ",",
            "[],",
            '"a":1,',
            "\\u0041",
            "\\ud800",
            " ",
            "é",
        ),
    ),
    "placeholders": Form(
        MAX_PAYLOAD_BYTES - 100,
        _Body("POST", "/v1/tasks", lambda text: {"type": "a", "payload": text}),
        ("<duetime.", "<", ">", "<duetime.type>", "<<duetime.type>", "<duetime.item>", "a", "<duetime.parameters.x>"),
    ),
    "url": Form(
        MAX_URL_LENGTH,
        _Body(
            "POST", "/v1/tasks", lambda text: {"type": "a", "target": {"kind": "http", "url": f"https://e.org/{text}"}}
        ),
        ("<duetime.type>", "%41", "/", "@", "?", "#", ":", ".", "a", "[", "://"),
    ),
    "cron": Form(
        MAX_EXPRESSION_LENGTH,
        _Body("POST", _PREVIEW, _preview(cron="TEXT")),
        ("* ", "1,", "*/1,", "1-", "h(", "l-", "w", "#", "mon-", "?", "~", "0 0 29 2 *", "TZ=", "a/", " ", "cron("),
    ),
    "rate": Form(
        MAX_EXPRESSION_LENGTH, _Body("POST", _PREVIEW, _preview(rate="TEXT")), ("1", " ", "day", "1 day", "rate(", ".")
    ),
    "interval": Form(
        MAX_EXPRESSION_LENGTH,
        _Body("POST", _PREVIEW, _preview(interval="TEXT")),
        ("R", "9", "/", "P1Y", "T1S", "1a", "2026-01-01T00:00:00Z/", "P", "."),
    ),
    "date": Form(
        10_000,
        _Body("POST", _PREVIEW, _preview(dates=["TEXT"])),
        ("2026-12-01T", "09:", "00", ".", "1", "Z", "+09:00", " "),
    ),
    "zone": Form(
        MAX_ZONE_LENGTH,
        _Body("POST", _PREVIEW, _preview(cron="* * * * *", timezone="TEXT")),
        ("A/", "../", "Europe/", "+", "a"),
    ),
    "calendar": Form(
        MAX_CALENDAR_BYTES - 100,
        lambda api, text: _Raw("PUT", "/v1/calendars/c", headers={"content-type": "text/calendar"})(
            api, _calendar(text)
        ),
        (
            *(
                "BEGIN:VEVENT\r\n",
                "END:VEVENT\r\n",
                "UID:1\r\n",
                "DTSTART;VALUE=DATE:20260101\r\n",
                "A",
                ":",
                ";",
                "\r\n ",
                "\\\\",
            ),
            *(
                "DTSTART;TZID=/",
                "A/",
                "A=1;",
                '","',
                "20260101,",
                "RDATE;VALUE=DATE:",
                "EXDATE:",
                "RRULE:FREQ=DAILY\r\n",
                "\r\n",
            ),
            *(
                "DURATION:",
                "P1D",
                "BEGIN:VTIMEZONE\r\n",
                "TZID:X\r\n",
                "RRULE:FREQ=YEARLY;BYMONTH=2;BYMONTHDAY=30\r\n",
                "SUMMARY:",
            ),
        ),
    ),
    "condition": Form(MAX_CONDITION_LENGTH, _Body("POST", "/v1/topologies", _node(when="")), _EXPRESSION),
    "map": Form(MAX_CONDITION_LENGTH, _Body("POST", "/v1/topologies", _node(map="")), _EXPRESSION),
    "signal condition": Form(MAX_CONDITION_LENGTH, _Body("POST", "/v1/tasks", _wait), _EXPRESSION),
    "if-none-match": Form(
        HEADER_BYTES,
        lambda api, text: api.send("GET", "/v1/settings", headers={"If-None-Match": text}),
        ('"a",', "W/", '"', ",", " ", "*"),
    ),
    "content type": Form(
        HEADER_BYTES, _header("content-type"), ("application/json", ";", " ", "charset=", "utf-8", '"', "a/")
    ),
    "accept encoding": Form(HEADER_BYTES, _header("accept-encoding"), ("gzip", ";q=0.", "0", ",", "*", " ")),
    "traceparent": Form(HEADER_BYTES, _header("traceparent"), ("00-", "a", "-", "f" * 32)),
    "idempotency key": Form(HEADER_BYTES, _header("Idempotency-Key"), ("a", " ", "!")),
    "lease": Form(HEADER_BYTES, _header("X-Duetime-Lease"), ("A", "W1tb", "eyJh", ".", "=", "_", "-")),
    "filter": Form(HEADER_BYTES, _query("type"), ("a", "&type=a", "%", "=", "%00", "+")),
    "tag": Form(HEADER_BYTES, _query("tag"), ("a:", ":", "a", "&tag=b:c", "%3A")),
    "page": Form(HEADER_BYTES, _query("next_token"), ("A", "W1tb", "eyJh", "-", "_", "=")),
    "state": Form(HEADER_BYTES, _query("state"), ("failed,", ",", "a")),
    "time": Form(HEADER_BYTES, _query("created_after"), ("2026-12-01T", "1", ":", "-", "Z", ".")),
}
