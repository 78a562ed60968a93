"""Sends hostile requests over HTTP to the deployed API, and checks the stack's table: `make fuzz-deployed`."""

from __future__ import annotations

import argparse
import base64
import binascii
import json
import re
import string
import sys
import time
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.client import HTTPConnection
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit
from uuid import uuid4

from rich.console import Console

from duetime.adapters.dynamodb import schema
from duetime_local import stack
from duetime_local.terminal import Display
from tests.deployed.stopping import no_ticks, no_workers
from tests.functions.api.gateway import Answer
from tests.hostile.drawn import Drawn
from tests.hostile.fuzz import Fuzzer
from tests.hostile.fuzz_report import told
from tests.hostile.world import furnished
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from duetime_local.stack import Stack

TIMEOUT_SECONDS = 60.0
_A_DRAWN = 1_500
"""For this many corpus requests, one request per operation and mode is drawn from the OpenAPI document."""
_REST_SECONDS, _LONGEST_REST_SECONDS = 2.0, 60.0
"""The interval within which any active writer writes again, and the longest time to wait until all writers stop."""
_PRINTABLE = "".join(sorted(set(string.printable) - set(string.whitespace)))
_CONTROLS = re.compile(r"[\x00-\x1f\x7f]")
_UNSENT = frozenset({"content-length", "transfer-encoding", "connection", "host"})
"""The headers that control HTTP itself; only the gateway has to detect wrong values in these headers."""


@dataclass(frozen=True)
class OverHttp:
    """A client that sends requests to a deployed API, and changes their bytes only where HTTP requires this."""

    url: str
    owner: str = "fuzzer"

    def send(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
        *,
        query: str = "",
        raw: str | None = None,
        is_base64: bool = False,
    ) -> Answer:
        """Send a request; `raw` is sent unchanged as the body, and `body` is sent as JSON."""
        parts = urlsplit(self.url)
        connection = HTTPConnection(parts.hostname or "", parts.port, timeout=TIMEOUT_SECONDS)
        text = raw if raw is not None else None if body is None else json.dumps(body)
        given = {"Content-Type": "application/json", "X-Duetime-Owner": self.owner, **(headers or {})}
        sendable = {name: _line(value) for name, value in given.items() if name.lower() not in _UNSENT}
        target = parts.path + _quoted(path) + (f"?{_quoted(query)}" if query else "")
        try:
            connection.request(method or "GET", target, _content(text, is_base64=is_base64), sendable)
            response = connection.getresponse()
            content = response.read().decode()
        finally:
            connection.close()
        told_headers = {name.title(): value for name, value in response.getheaders()}
        if method == "HEAD":
            told_headers.pop("Content-Type", None)
        return Answer(response.status, told_headers, content)


@dataclass
class Deployed:
    """A deployed stack in which only requests have an effect.

    Attributes:
        says_why: whether every refusal comes from the function, which is not the case behind a gateway.
    """

    over: Stack
    apis: list[OverHttp] = field(default_factory=list)
    says_why: bool = False
    _before: Mapping[str, Any] = field(default_factory=dict)
    _now: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        self._dynamodb = self.over.emulator.client("dynamodb")

    @property
    def api(self) -> OverHttp:
        """The client that acts for the latest world's owner."""
        return self.apis[-1]

    def fresh_world(self) -> Mapping[str, Sequence[str]]:
        """Create a few resources of every kind for a separate owner."""
        self.apis.append(OverHttp(self.over.ready.api_url, f"fuzzer-{uuid4()}"))
        self._now = None
        return furnished(self.api)

    def begin(self) -> None:
        """Record the table's contents, unless they are already known because the last request was refused."""
        self._before = self._snapshot() if self._now is None else self._now
        self._now = None

    def written(self) -> Sequence[str]:
        """The keys of the items that were created, changed, or deleted since the last call of `begin`."""
        self._now = after = self._snapshot()
        return [key for key in after.keys() | self._before.keys() if after.get(key) != self._before.get(key)]

    def is_at_rest(self) -> bool:
        """Whether earlier work has ended, so that no worker has a message and the table does not change."""
        sqs = self.over.emulator.client("sqs")
        for name, url in self.over.deployment.outputs.items():
            if name.startswith("QueueUrl"):
                held = sqs.get_queue_attributes(QueueUrl=url, AttributeNames=["All"])["Attributes"]
                if int(held["ApproximateNumberOfMessagesNotVisible"]):
                    return False
        before = self._snapshot()
        time.sleep(_REST_SECONDS)
        return self._snapshot() == before

    def _snapshot(self) -> dict[str, Any]:
        """All items except timers, which are written before their task or schedule and have no effect by themselves."""
        pages = self._dynamodb.get_paginator("scan")
        name = self.over.deployment.outputs["TableName"]
        items = (item for page in pages.paginate(TableName=name) for item in page["Items"])
        keys = ((item[schema.PARTITION_KEY]["S"], item[schema.SORT_KEY]["S"], item) for item in items)
        return {
            f"{partition} {sort}": item
            for partition, sort, item in keys
            if schema.TIMER_MARK not in sort and schema.SCHEDULE_MARK not in sort
        }


@contextmanager
def fuzzed(over: Stack) -> Iterator[Fuzzer]:
    """A fuzzer for a stack whose ticks and workers are stopped; the fuzzer's resources are removed afterwards."""
    grounds = Deployed(over)
    with no_ticks(over), no_workers(over):
        # After this wait, delayed work has ended, or no longer has an effect.
        until(grounds.is_at_rest, _LONGEST_REST_SECONDS)
        try:
            yield Fuzzer(grounds)
        finally:
            for api in grounds.apis:
                _cleared(api)


def _cleared(api: OverHttp) -> None:
    """Remove all resources that would start or stop other tasks."""
    for switch in api.send("GET", "/v1/switches").body["switches"]:
        api.send("DELETE", f"/v1/switches/{switch['scope']}/{quote(switch['name'], safe='')}")
    for schedule in api.send("GET", "/v1/schedules", query="limit=100").body["schedules"]:
        api.send("DELETE", f"/v1/schedules/{quote(schedule['name'])}")
    api.send("POST", "/v1/tasks/cancel", {"filter": {}, "limit": 1000, "force": True})


def _content(text: str | None, *, is_base64: bool) -> bytes | None:
    if text is None:
        return None
    if is_base64:
        try:
            return base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            pass
    return text.encode("utf-8", "surrogatepass")


def _quoted(text: str) -> str:
    return quote(text, safe=_PRINTABLE, errors="replace")


def _line(value: str) -> bytes:
    return _CONTROLS.sub(" ", value).encode("utf-8", "replace")


def main() -> int:
    """Fuzz a separate stack, and return 1 if a promise was broken."""
    parser = argparse.ArgumentParser(prog="fuzz-deployed", description="Send hostile requests to a local stack.")
    parser.add_argument("--requests", type=int, default=3_000, help="the number of requests")
    parser.add_argument("--seed", type=int, default=0, help="the seed of all random choices")
    asked = parser.parse_args()
    with stack.running(Display(Console()), port=0) as over, fuzzed(over) as fuzzer:
        fuzzer.lay(asked.requests, asked.seed)
        Drawn(fuzzer).lay(max(1, asked.requests // _A_DRAWN), asked.seed)
    return told(fuzzer)


if __name__ == "__main__":
    sys.exit(main())
