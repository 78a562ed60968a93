from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from duetime import composition
from duetime.composition import composed
from duetime.composition.core import CoreServices
from duetime.domain.circuit_breakers import Circuit
from duetime.domain.times import DAY
from duetime.settings import Variable
from tests.clocks import NOW

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.functions.api.gateway import Gateway

PATH = "/v1/switches"
STOP = {"scope": "type", "name": "report", "stopped": True, "reason": "a bad release"}
CAP = {"scope": "owner", "name": "ann", "max_concurrent": 5}


@pytest.fixture
def ops(environ: dict[str, str], compose: Callable[[], None], api: Gateway) -> Gateway:
    """The function, called by an operator."""
    environ[Variable.OPERATORS] = "boss 123:role/ops"
    compose()
    return replace(api, headers={"X-Duetime-Owner": "123:role/ops"})


def test_a_switch_is_set_seen_and_lifted(ops: Gateway) -> None:
    """It answers as it is, with who set it and when; lifted, it is gone."""
    put = ops.send("PUT", PATH, STOP)
    assert (put.status, put.body) == (
        200,
        {**STOP, "max_concurrent": None, "changed_at": "2026-11-21T02:33:07.250Z", "changed_by": "123:role/ops"},
    )
    ops.send("PUT", PATH, CAP)
    assert [each["name"] for each in ops.send("GET", PATH).body["switches"]] == ["ann", "report"]
    lifted = ops.send("DELETE", PATH, query="scope=type&name=report")
    assert (lifted.status, lifted.body) == (200, put.body)
    again = ops.send("DELETE", PATH, query="scope=type&name=report")
    assert (again.status, again.problem["code"]) == (404, "switch_unknown")
    assert [each["max_concurrent"] for each in ops.send("GET", PATH).body["switches"]] == [5]


def test_a_switch_is_replaced_as_a_whole(ops: Gateway) -> None:
    """What a later request leaves out is as it is without; a switch that does nothing is removed."""
    ops.send("PUT", PATH, {**STOP, "max_concurrent": 3})
    assert ops.send("PUT", PATH, {**STOP, "stopped": False, "max_concurrent": 4}).body["stopped"] is False
    assert ops.send("PUT", PATH, {"scope": "type", "name": "report"}).status == 200
    assert ops.send("GET", PATH).body == {"switches": [], "circuits": []}


def test_open_circuits_are_seen_by_operators(ops: Gateway) -> None:
    """With when the host is called again; from then on they are half open. Others do not see which hosts there are."""
    circuits = composed(CoreServices).stores.circuit_breakers
    circuits.save(Circuit("an#n", "b.example.org").opened("Http503", NOW), "b", NOW + DAY)
    circuits.save(Circuit("bob", "a.example.org").opened("HostUnknown", NOW - DAY), "a", NOW + DAY)
    half, whole = ops.send("GET", PATH).body["circuits"]
    assert whole == {
        "owner": "an#n",
        "host": "b.example.org",
        "state": "open",
        "openings": 1,
        "reason": "Http503",
        "opened_at": "2026-11-21T02:33:07.250Z",
        "open_until": "2026-11-21T02:33:37.250Z",
    }
    assert (half["host"], half["state"]) == ("a.example.org", "half_open")
    assert replace(ops, headers={}).send("GET", PATH).body["circuits"] == []


def test_only_operators_switch_for_all(ops: Gateway) -> None:
    """Everybody else is told so, by a code of its own, and nothing changes; one's own switch is one's own."""
    other = replace(ops, headers={"X-Duetime-Owner": "ann"})
    for body in (STOP, {"scope": "everything", "stopped": True}, {**STOP, "scope": "owner", "name": "bob"}):
        refused = other.send("PUT", PATH, body)
        assert (refused.status, refused.problem["code"]) == (403, "operator_required")
    assert other.send("DELETE", PATH, query="scope=everything").problem["code"] == "operator_required"
    assert ops.send("GET", PATH).body["switches"] == []
    assert other.send("PUT", PATH, {"scope": "owner", "name": "ann", "stopped": True}).status == 200
    assert other.send("DELETE", PATH, query="scope=owner&name=ann").status == 200


def test_nobody_is_an_operator_by_default(api: Gateway) -> None:
    """A deployment that names none has none; `*` means everybody."""
    assert api.send("PUT", PATH, STOP).status == 403
    platform = composed().platform
    composition.use(replace(platform, environ={**platform.environ, Variable.OPERATORS: "*"}))
    assert api.send("PUT", PATH, STOP).status == 200


BAD: list[tuple[dict[str, Any], str]] = [
    ({}, "scope"),
    ({"scope": "task", "stopped": True}, "scope"),
    ({"scope": ["type"], "stopped": True}, "scope"),
    ({"scope": "type", "stopped": True}, "name"),
    ({"scope": "type", "name": "", "stopped": True}, "name"),
    ({"scope": "type", "name": "a b", "stopped": True}, "name"),
    ({"scope": "type", "name": "report\n", "stopped": True}, "name"),
    ({"scope": "type", "name": "x" * 65, "stopped": True}, "name"),
    ({"scope": "type", "name": 7, "stopped": True}, "name"),
    ({"scope": "type", "name": None, "stopped": True}, "name"),
    ({"scope": "owner", "name": "a#b", "stopped": True}, "name"),
    ({"scope": "owner", "name": "x" * 129, "stopped": True}, "name"),
    ({"scope": "owner", "name": "\u0430nn", "stopped": True}, "name"),
    ({"scope": "everything", "name": "report", "stopped": True}, "name"),
    ({"scope": "everything", "max_concurrent": 5}, "max_concurrent"),
    ({**CAP, "max_concurrent": 0}, "max_concurrent"),
    ({**CAP, "max_concurrent": -1}, "max_concurrent"),
    ({**CAP, "max_concurrent": 101}, "max_concurrent"),
    ({**CAP, "max_concurrent": 10**38}, "max_concurrent"),
    ({**CAP, "max_concurrent": 2.5}, "max_concurrent"),
    ({**CAP, "max_concurrent": True}, "max_concurrent"),
    ({**STOP, "stopped": "true"}, "stopped"),
    ({**STOP, "stopped": 1}, "stopped"),
    ({**STOP, "reason": "x" * 129}, "reason"),
    ({**STOP, "reason": "\x1b[31m"}, "reason"),
    ({**STOP, "reason": None}, "reason"),
    ({**STOP, "changed_by": "me"}, "changed_by"),
]


@pytest.mark.parametrize(("body", "field"), BAD)
def test_a_bad_switch_is_refused_by_name(ops: Gateway, body: dict[str, Any], field: str) -> None:
    """Each fault names its field, and nothing is stored."""
    refused = ops.send("PUT", PATH, body)
    assert (refused.status, list(refused.faults)) == (422, [field])
    assert ops.send("GET", PATH).body["switches"] == []


@pytest.mark.parametrize("raw", ["", "[]", "null", '{"scope": "\\ud800"}', '{"scope": NaN}', "{", "[" * 10_000])
def test_a_body_that_is_no_switch_is_refused(ops: Gateway, raw: str) -> None:
    """Whatever is sent is a problem of the caller's, never of ours."""
    assert 400 <= ops.send("PUT", PATH, raw=raw).status < 500


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ("", "scope"),
        ("scope=task", "scope"),
        ("scope=type", "name"),
        ("scope=everything&name=x", "name"),
        ("scope=type&name=a%20b", "name"),
        ("scope=type&scope=owner&name=a", "scope"),
        ("scope=type&name=a&all=1", "all"),
    ],
)
def test_a_bad_query_is_refused_by_name(ops: Gateway, query: str, field: str) -> None:
    """Which switch is to be lifted must be clear."""
    refused = ops.send("DELETE", PATH, query=query)
    assert (refused.status, list(refused.faults)) == (400, [field])


def test_other_methods_are_not_supported(ops: Gateway) -> None:
    """The answer says which are; parameters of a list there are none."""
    posted = ops.send("POST", PATH, STOP)
    assert (posted.status, posted.headers["Allow"]) == (405, "GET, HEAD, PUT, DELETE, OPTIONS")
    assert list(ops.send("GET", PATH, query="limit=1").faults) == ["limit"]
    assert list(ops.send("PUT", PATH, STOP, query="force=true").faults) == ["force"]
