from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from duetime import composition
from duetime.composition import composed
from duetime.composition.core import CoreServices
from duetime.domain.circuit_breakers import Circuit
from duetime.domain.limits import MAX_SWITCHES
from duetime.domain.times import DAY
from duetime.environment_variables import Variable
from tests.clocks import NOW

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.functions.api.gateway import Gateway

PATH = "/v1/switches"
REPORTS = f"{PATH}/type/report"
ANN = f"{PATH}/owner/ann"
ALL = f"{PATH}/all/all"
STOP = {"stopped": True, "reason": "a bad release"}
CAP = {"max_concurrent": 5}


@pytest.fixture
def ops(environ: dict[str, str], compose: Callable[[], None], api: Gateway) -> Gateway:
    """A gateway to the function, called by an operator."""
    environ[Variable.OPERATORS] = "boss 123:role/ops"
    compose()
    return replace(api, headers={"X-Duetime-Owner": "123:role/ops"})


def test_a_switch_is_set_seen_and_deleted(ops: Gateway) -> None:
    """A switch can be set, read, listed and deleted, and shows when and by whom it was set."""
    put = ops.send("PUT", REPORTS, STOP)
    key = {"scope": "type", "name": "report"}
    by = {"updated_at": "2026-11-21T02:33:07.250Z", "updated_by": "123:role/ops"}
    assert (put.status, put.body) == (200, {**key, **STOP, "max_concurrent": None, "rate": None, **by})
    assert ops.send("GET", REPORTS).body == put.body
    ops.send("PUT", ANN, CAP)
    assert [each["name"] for each in ops.send("GET", PATH).body["switches"]] == ["ann", "report"]
    deleted = ops.send("DELETE", REPORTS)
    assert (deleted.status, deleted.body) == (200, put.body)
    for method in ("GET", "DELETE"):
        again = ops.send(method, REPORTS)
        assert (again.status, again.problem["code"]) == (404, "switch_not_found")
    assert [each["max_concurrent"] for each in ops.send("GET", PATH).body["switches"]] == [5]


def test_a_switch_is_replaced_as_a_whole(ops: Gateway) -> None:
    """Setting a switch replaces all of its fields, and a switch without effect is deleted."""
    ops.send("PUT", REPORTS, {**STOP, "max_concurrent": 3})
    assert ops.send("PUT", REPORTS, {**STOP, "stopped": False, "max_concurrent": 4}).body["stopped"] is False
    last = ops.send("PUT", REPORTS, {"stopped": True}).body
    assert (last["stopped"], last["max_concurrent"], last["reason"]) == (True, None, "")
    assert ops.send("PUT", REPORTS, {}).status == 200
    assert ops.send("GET", PATH).body == {"switches": [], "circuits": []}


def test_the_switch_for_all_tasks_is_called_all(ops: Gateway) -> None:
    """The switch for all tasks has the scope `all` and the name `all`."""
    put = ops.send("PUT", ALL, {"stopped": True})
    assert (put.status, put.body["scope"], put.body["name"]) == (200, "all", "all")
    assert ops.send("DELETE", ALL).status == 200


@pytest.mark.parametrize("name", ["1:role/a/b", "a%b", "a%2Fb", "%25"])
def test_a_name_may_have_slashes_and_percent_signs(ops: Gateway, name: str) -> None:
    """A switch's name may have slashes and percent signs; the gateway decodes everything in the path except `%25`."""
    path = f"{PATH}/owner/{name.replace('%', '%25')}"
    assert ops.send("PUT", path, STOP).body["name"] == name
    assert ops.send("GET", path).body["name"] == name


def test_a_switch_can_be_sent_back_with_its_scope_and_name(ops: Gateway) -> None:
    """A switch can be sent back with its scope and name, which must match the path."""
    key = {"scope": "type", "name": "report"}
    assert ops.send("PUT", REPORTS, {**STOP, **key}).status == 200
    assert ops.send("PUT", REPORTS, {**STOP, "scope": None, "name": None}).status == 200
    refused = ops.send("PUT", REPORTS, {**STOP, "scope": "owner", "name": "ann"})
    assert (refused.status, sorted(refused.faults)) == (422, ["name", "scope"])


def test_open_circuits_are_seen_by_operators(ops: Gateway) -> None:
    """Operators see open circuits and the times when the circuits' hosts are called again.

    Other callers see no hosts.
    """
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


def test_only_operators_set_switches_other_than_their_own(ops: Gateway) -> None:
    """Only operators can set or delete switches, except that each owner can change its own switch."""
    other = replace(ops, headers={"X-Duetime-Owner": "ann"})
    for path in (REPORTS, ALL, f"{PATH}/owner/bob"):
        refused = other.send("PUT", path, STOP)
        assert (refused.status, refused.problem["code"]) == (403, "operator_required")
    assert other.send("DELETE", ALL).problem["code"] == "operator_required"
    assert ops.send("GET", PATH).body["switches"] == []
    assert other.send("PUT", ANN, STOP).status == 200
    assert other.send("DELETE", ANN).status == 200


def test_operators_can_set_switches_beyond_the_maximum_for_owners(ops: Gateway) -> None:
    """Operators can set any switch, even if the maximum number of owners have a switch."""
    for number in range(MAX_SWITCHES):
        owner = f"owner-{number}"
        assert replace(ops, headers={"X-Duetime-Owner": owner}).send("PUT", f"{PATH}/owner/{owner}", STOP).status == 200
    late = replace(ops, headers={"X-Duetime-Owner": "late"}).send("PUT", f"{PATH}/owner/late", STOP)
    assert (late.status, late.problem["code"]) == (409, "switches_full")
    for path in (ALL, REPORTS, f"{PATH}/owner/late"):
        assert ops.send("PUT", path, STOP).status == 200
    assert len(ops.send("GET", PATH).body["switches"]) == MAX_SWITCHES + 3


def test_the_switch_of_an_operator_replaces_that_of_the_owner(ops: Gateway) -> None:
    """An owner can neither change nor delete an operator's switch for that owner.

    If an operator deletes the switch, the owner's own switch is also removed.
    """
    ann = replace(ops, headers={"X-Duetime-Owner": "ann"})
    assert ann.send("PUT", ANN, CAP).status == 200
    assert ops.send("PUT", ANN, STOP).status == 200
    assert ann.send("GET", ANN).body["stopped"] is True
    assert [ann.send(method, ANN, body).problem["code"] for method, body in (("PUT", CAP), ("DELETE", None))] == [
        "operator_required"
    ] * 2
    assert ops.send("DELETE", ANN).body["stopped"] is True
    assert ann.send("GET", ANN).status == 404


def test_an_operator_can_delete_an_owners_switch(ops: Gateway) -> None:
    """An operator can delete an owner's switch, and the response shows the deleted switch."""
    assert replace(ops, headers={"X-Duetime-Owner": "ann"}).send("PUT", ANN, STOP).status == 200
    assert ops.send("DELETE", ANN).body["updated_by"] == "ann"
    assert ops.send("GET", ANN).status == 404


def test_nobody_is_an_operator_by_default(api: Gateway) -> None:
    """By default, no caller is an operator, and `*` in the setting makes every caller an operator."""
    assert api.send("PUT", REPORTS, STOP).status == 403
    platform = composed().platform
    composition.use(replace(platform, environ={**platform.environ, Variable.OPERATORS: "*"}))
    assert api.send("PUT", REPORTS, STOP).status == 200


BAD: list[tuple[dict[str, Any], str]] = [
    ({"scope": "task"}, "scope"),
    ({"scope": ["type"]}, "scope"),
    ({"name": 7}, "name"),
    ({"rate": {"limit": 0}}, "rate.limit"),
    ({"rate": {"limit": 1, "per_seconds": 0}}, "rate.per_seconds"),
    ({"rate": {"per_seconds": 60}}, "rate.limit"),
    ({"rate": {"limit": 5, "key": "crm"}}, "rate.key"),
    ({"max_concurrent": 0}, "max_concurrent"),
    ({"max_concurrent": -1}, "max_concurrent"),
    ({"max_concurrent": 101}, "max_concurrent"),
    ({"max_concurrent": 10**38}, "max_concurrent"),
    ({"max_concurrent": 2.5}, "max_concurrent"),
    ({"max_concurrent": True}, "max_concurrent"),
    ({"stopped": "true"}, "stopped"),
    ({"stopped": 1}, "stopped"),
    ({**STOP, "reason": "x" * 129}, "reason"),
    ({**STOP, "reason": "\x1b[31m"}, "reason"),
    ({**STOP, "reason": None}, "reason"),
    ({**STOP, "updated_by": "me"}, "updated_by"),
]


@pytest.mark.parametrize(("body", "field"), BAD)
def test_an_error_for_an_invalid_switch_names_the_field(ops: Gateway, body: dict[str, Any], field: str) -> None:
    """An error for an invalid switch names the field, and no switch is stored."""
    refused = ops.send("PUT", REPORTS, body)
    assert (refused.status, list(refused.faults)) == (422, [field])
    assert ops.send("GET", PATH).body["switches"] == []


def test_the_switch_for_all_tasks_cannot_limit_their_number(ops: Gateway) -> None:
    """The switch for all tasks cannot limit how many tasks run, because each task would have to write the same item."""
    refused = ops.send("PUT", ALL, CAP)
    assert (refused.status, list(refused.faults)) == (422, ["max_concurrent"])


@pytest.mark.parametrize("raw", ["", "[]", "null", '{"scope": "\\ud800"}', '{"scope": NaN}', "{", "[" * 10_000])
def test_a_body_that_is_not_a_switch_returns_a_client_error(ops: Gateway, raw: str) -> None:
    """A body that is not a switch returns a client error."""
    assert 400 <= ops.send("PUT", REPORTS, raw=raw).status < 500


@pytest.mark.parametrize(
    ("key", "field"),
    [
        ("task/report", "scope"),
        ("everything/all", "scope"),
        ("type/a b", "name"),
        ("type/report\n", "name"),
        (f"type/{'x' * 65}", "name"),
        ("owner/a#b", "name"),
        (f"owner/{'x' * 129}", "name"),
        ("owner/\u0430nn", "name"),
        ("all/report", "name"),
    ],
)
def test_an_error_for_an_invalid_switch_path_names_the_field(ops: Gateway, key: str, field: str) -> None:
    """An error for an invalid switch path names the path's field."""
    for method, body in (("GET", None), ("PUT", STOP), ("DELETE", None)):
        refused = ops.send(method, f"{PATH}/{key}", body)
        assert (refused.status, list(refused.faults)) == (400, [field])


def test_other_methods_are_not_supported(ops: Gateway) -> None:
    """Unsupported methods return 405 with the supported methods, and query parameters are refused."""
    posted = ops.send("POST", REPORTS, STOP)
    assert (posted.status, posted.headers["Allow"]) == (405, "GET, HEAD, PUT, DELETE, OPTIONS")
    assert list(ops.send("GET", PATH, query="limit=1").faults) == ["limit"]
    assert list(ops.send("PUT", REPORTS, STOP, query="force=true").faults) == ["force"]
