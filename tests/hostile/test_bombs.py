"""Any text that an owner writes costs bounded time and memory, even at the largest size that the API accepts."""

from __future__ import annotations

import base64
import gzip
import json
import time
import tracemalloc
from functools import partial
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.functions.api.gateway import Gateway
from tests.functions.stack import Stack
from tests.hostile.bombs import FORMS, Form

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.functions.api.gateway import Answer

CPU_SECONDS = 15.0
"""The maximum CPU time of a request. The slowest request takes three seconds; superlinear work takes minutes."""
PEAK_BYTES = 256 * 1_048_576
"""The maximum memory of a request, which is half the memory of the API's function."""


def cheaply(send: Callable[[], Answer]) -> Answer:
    """Send a request, and check its CPU time and that the response is not an internal error."""
    began = time.process_time()
    answer = send()
    spent = time.process_time() - began
    assert answer.status < 500, answer.text
    assert spent < CPU_SECONDS
    return answer


def in_little_memory(send: Callable[[], Answer]) -> Answer:
    """Send a request, and check its memory use; the measurement makes the request take several times as long."""
    tracemalloc.start()
    try:
        answer = send()
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < PEAK_BYTES
    return answer


LARGE = 100_000
"""The length from which strings of a given form take a noticeable time."""
BY_SIZE = [pytest.param(name, marks=[pytest.mark.slow] if form.most > LARGE else []) for name, form in FORMS.items()]


@pytest.mark.parametrize("name", BY_SIZE)
def test_repeated_units_cost_bounded_time_and_memory(name: str) -> None:
    """Each unit, repeated as often as the API accepts, costs bounded time and memory (of long forms, some units)."""
    form = FORMS[name]
    Stack.faked()
    for number, unit in enumerate(form.units):
        send = partial(form.send, Gateway(), form.bomb("", unit, ""))
        cheaply(send)
        if form.most < LARGE or number % 10 == 0:
            in_little_memory(send)


@st.composite
def bombs(draw: st.DrawFn, form: Form) -> str:
    """A string of the maximum length that consists of a beginning, up to three repeated units, and an end."""
    parts = st.lists(st.sampled_from(form.units) | st.text(max_size=3), max_size=4).map("".join)
    unit = draw(st.lists(st.sampled_from(form.units), min_size=1, max_size=3).map("".join))
    return form.bomb(draw(parts), unit, draw(parts))


@pytest.mark.slow
@pytest.mark.parametrize("name", FORMS)
def test_drawn_texts_cost_bounded_time(name: str) -> None:
    """Units that are nested and mixed in any way, between any beginning and any end, cost bounded time."""
    form = FORMS[name]
    examples = 100 if form.most < LARGE else 10
    Stack.faked()

    @settings(max_examples=examples)
    @given(bombs(form))
    def check(text: str) -> None:
        cheaply(partial(form.send, Gateway(), text))

    check()


def test_a_gzip_bomb_is_rejected_before_it_is_expanded() -> None:
    """A gzip body of 200 KB that expands to 200 MB of zeros is refused before it is expanded."""
    Stack.faked()
    body = base64.b64encode(gzip.compress(b"0" * 200_000_000)).decode()
    send = partial(Gateway().send, "POST", "/v1/tasks", None, {"content-encoding": "gzip"}, raw=body, is_base64=True)
    assert cheaply(send).status == in_little_memory(send).status == 413


def test_a_run_whose_parameters_make_a_large_graph_is_rejected() -> None:
    """A run whose graph has eleven thousand placeholders for a value of 4 KB is refused, and the field is named."""
    Stack.faked()
    name = "/v1/topologies/definitions/d"
    node = {"type": "a", "payload": "<duetime.parameters.x>" * 11_000}
    assert Gateway().send("PUT", name, {"parameters": {"x": {}}, "nodes": {"a": node}}).status == 201
    send = partial(Gateway().send, "POST", f"{name}/runs", {"parameters": {"x": "y" * 4_000}})
    cheaply(send)
    refused = in_little_memory(send)
    assert (refused.status, list(refused.faults)) == (422, ["parameters"])


@pytest.mark.parametrize(
    "payload",
    [
        {"items": 1},
        {"items": [1], "node": 1, "max_parallel": None, "tolerated_failures": 0},
        {"items": ["x"] * 9_000, "node": {"type": "a"}, "max_parallel": None, "tolerated_failures": 0},
    ],
)
def test_a_change_of_a_topology_cannot_set_a_maps_payload(payload: dict[str, object]) -> None:
    """A change to a topology cannot set a map's payload, whose size is checked only when a worker creates it."""
    Stack.faked()
    graph = {"nodes": {"a": {"type": "a"}}}
    task = Gateway().create({"type": "t", "target": {"kind": "topology"}, "payload": graph, "delay_seconds": 600})
    refused = cheaply(partial(Gateway().send, "PATCH", f"/v1/tasks/{task['id']}", {"payload": payload}))
    assert refused.status == 422, refused.text
    assert all(field.startswith("payload") for field in refused.faults)


def test_a_time_zone_of_many_parts_is_refused() -> None:
    """A time zone of very many parts is refused; the library looks for each part in the previous part's package."""
    Stack.faked()
    headers = {"content-type": "text/calendar"}
    for zone in ("/" + "A/" * 100_000, "/Aa/a" * 20_000 + "!"):
        event = f"BEGIN:VEVENT\r\nUID:1\r\nDTSTART;TZID={zone}:20260101T000000\r\nEND:VEVENT\r\n"
        text = f"BEGIN:VCALENDAR\r\nVERSION:2.0\r\nPRODID:x\r\n{event}END:VCALENDAR\r\n"
        refused = cheaply(partial(Gateway().send, "PUT", "/v1/calendars/c", None, headers, raw=text))
        assert (refused.status, list(refused.faults)) == (422, ["ics"])


def test_a_valid_text_of_each_form_is_accepted() -> None:
    """A valid text of each form but three is accepted, so requests with these forms reach the parsers."""
    Stack.faked()
    valid = {"json": "[1]", "placeholders": "<duetime.type>", "cron": "0 3 * * *", "rate": "1 day", "interval": "PT1H"}
    valid |= {
        "zone": "Europe/Paris",
        "condition": "parents.l.result",
        "map": "parents.l.result",
        "signal condition": "payload.a",
        "date": "2099-01-01T00:00:00Z",
    }
    valid |= {"url": "a", "state": "failed", "filter": "a", "tag": "a:b", "traceparent": "", "idempotency key": "a"}
    day = "BEGIN:VEVENT\r\nUID:1\r\nDTSTART;VALUE=DATE:20260101\r\nEND:VEVENT\r\n"
    valid |= {
        "calendar": day,
        "if-none-match": '"a"',
        "time": "2026-12-01T00:00:00Z",
        "content type": "application/json",
    }
    statuses = {name: FORMS[name].send(Gateway(), text).status for name, text in valid.items()}
    assert {name: status for name, status in statuses.items() if status not in {200, 201}} == {}
    assert json.dumps(sorted(FORMS.keys() - valid)) == '["accept encoding", "lease", "page"]'
