"""Tests of intake rules over REST: who may set rules, and which rules are refused."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from duetime.domain.limits import MAX_INTAKE_RULES
from duetime.environment_variables import Variable

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.functions.api.gateway import Gateway

PATH = "/v1/intake-rules"
ORDERS = f"{PATH}/order-placed"
EVENTS = "123456789012:role/Events"
PATTERN = {"source": ["com.example.orders"]}
TASK = {"type": "report", "delay_seconds": 60}
CREATE = {"pattern": PATTERN, "create": {"task": TASK, "fields": {"payload": "detail"}}}
CANCEL = {"pattern": PATTERN, "cancel": {"filter": {"type": "report"}, "fields": {"tags.order": "detail.id"}}}
SIGNAL = {"pattern": PATTERN, "signal": {"name": "order.paid", "fields": {"key": "detail.id", "payload": "detail"}}}
BAD: list[tuple[dict[str, Any], str]] = [
    ({"pattern": PATTERN}, "body"),
    ({**CREATE, "cancel": CANCEL["cancel"]}, "body"),
    ({**CREATE, "pattern": {}}, "pattern"),
    ({**CREATE, "pattern": {"detail": {"a": [{"begins": "x"}]}}}, "pattern.detail.a"),
    ({"pattern": PATTERN, "create": {"fields": {}}}, "create.task"),
    ({"pattern": PATTERN, "create": {"task": {"type": "report", "payload_": 1}}}, "create.task.payload_"),
    ({"pattern": PATTERN, "create": {"task": {**TASK, "timeout_seconds": 0}}}, "create.task.timeout_seconds"),
    ({"pattern": PATTERN, "create": {"task": TASK, "fields": {"owner": "detail"}}}, "create.fields.owner"),
    ({"pattern": PATTERN, "create": {"task": TASK, "fields": {"tags..a": "detail"}}}, "create.fields.tags..a"),
    ({"pattern": PATTERN, "create": {"task": TASK, "fields": {"payload": "detail."}}}, "create.fields.payload"),
    ({"pattern": PATTERN, "create": {"task": TASK, "fields": {"payload": "sum()"}}}, "create.fields.payload"),
    (
        {"pattern": PATTERN, "create": {"task": TASK, "fields": {"payload": "[@,@]" + "|[@,@]" * 30}}},
        "create.fields.payload",
    ),
    ({"pattern": PATTERN, "cancel": {}}, "cancel.filter"),
    ({"pattern": PATTERN, "cancel": {"filter": {"priority_": "low"}}}, "cancel.filter.priority_"),
    ({"pattern": PATTERN, "cancel": {"fields": {"payload": "detail"}}}, "cancel.fields.payload"),
    ({**SIGNAL, "cancel": CANCEL["cancel"]}, "body"),
    ({"pattern": PATTERN, "signal": {}}, "signal.name"),
    ({"pattern": PATTERN, "signal": {"name": "a b"}}, "signal.name"),
    ({"pattern": PATTERN, "signal": {"name": "a", "payload": "x" * 262_145}}, "signal.payload"),
    ({"pattern": PATTERN, "signal": {"name": "a", "fields": {"owner": "detail.owner"}}}, "signal.fields.owner"),
    ({**CREATE, "owner": "two words"}, "owner"),
    ({**CREATE, "description": "x" * 257}, "description"),
    ({**CREATE, "other": 1}, "other"),
]


@pytest.fixture
def ops(environ: dict[str, str], compose: Callable[[], None], api: Gateway) -> Gateway:
    """A gateway to a deployment with an intake, called by an operator."""
    environ |= {Variable.OPERATORS: "boss", Variable.INTAKE_OWNER: EVENTS}
    compose()
    return replace(api, headers={"X-Duetime-Owner": "boss"})


def test_a_rule_is_set_shown_replaced_and_deleted(ops: Gateway) -> None:
    """A rule can be set, read, replaced and deleted, and shows its tasks' owner and the caller that set it."""
    put = ops.send("PUT", ORDERS, CREATE)
    shown = {
        "name": "order-placed",
        "pattern": PATTERN,
        "create": CREATE["create"],
        "cancel": None,
        "signal": None,
        "owner": EVENTS,
        "description": "",
        "updated_at": "2026-11-21T02:33:07.250Z",
        "updated_by": "boss",
    }
    assert (put.status, put.body) == (200, shown)
    assert ops.send("GET", ORDERS).body == shown
    ops.send("PUT", f"{PATH}/a", CANCEL)
    replaced = ops.send("PUT", ORDERS, {**CANCEL, "owner": "ann", "description": "why"}).body
    assert replaced["cancel"] == {**CANCEL["cancel"], "force": False}  # type: ignore[dict-item]
    assert (replaced["create"], replaced["owner"], replaced["description"]) == (None, "ann", "why")
    assert ops.send("PUT", f"{PATH}/b", SIGNAL).body["signal"] == SIGNAL["signal"]
    assert [each["name"] for each in ops.send("GET", PATH).body["rules"]] == ["a", "b", "order-placed"]
    assert ops.send("DELETE", ORDERS).body == replaced
    assert ops.send("GET", ORDERS).status == ops.send("DELETE", ORDERS).status == 404


@pytest.mark.parametrize(("body", "field"), BAD, ids=[field + str(at) for at, (_, field) in enumerate(BAD)])
def test_an_invalid_rule_is_refused(ops: Gateway, body: dict[str, Any], field: str) -> None:
    """An error for an invalid rule names the field, and no rule is stored."""
    answer = ops.send("PUT", ORDERS, body)
    assert answer.status == 422
    assert [fault["field"] for fault in answer.body["errors"]] == [field]
    assert ops.send("GET", PATH).body == {"rules": []}


def test_only_operators_see_and_set_rules(ops: Gateway) -> None:
    """Only operators can read and set rules, because rules see all events and create tasks for any owner."""
    ann = replace(ops, headers={"X-Duetime-Owner": "ann"})
    for method, path, body in (
        ("GET", PATH, None),
        ("GET", ORDERS, None),
        ("PUT", ORDERS, CREATE),
        ("DELETE", ORDERS, None),
    ):
        assert ann.send(method, path, body).status == 403


def test_a_deployment_without_an_intake_has_no_rules(ops: Gateway, environ: dict[str, str]) -> None:
    """Without an intake, a request for rules is refused, and the error names the missing setting."""
    environ[Variable.INTAKE_OWNER] = ""
    for method, path, body in (("GET", PATH, None), ("PUT", ORDERS, CREATE)):
        answer = ops.send(method, path, body)
        assert (answer.status, answer.body["code"]) == (409, "intake_off")
        assert "intake_owner" in answer.body["detail"]


def test_no_rule_can_be_added_beyond_the_maximum_number(ops: Gateway) -> None:
    """If the maximum number of rules is reached, no rule can be added, but existing rules can be replaced."""
    for index in range(MAX_INTAKE_RULES):
        assert ops.send("PUT", f"{PATH}/rule-{index}", CANCEL).status == 200
    answer = ops.send("PUT", ORDERS, CREATE)
    assert (answer.status, answer.body["code"]) == (409, "intake_rules_full")
    assert ops.send("PUT", f"{PATH}/rule-0", CREATE).status == 200


def test_a_rules_name_is_validated(ops: Gateway) -> None:
    """A rule's name is validated when the rule is set, and GET returns 404 for an invalid name."""
    assert ops.send("PUT", f"{PATH}/a%20b", CREATE).status == 400
    assert ops.send("GET", f"{PATH}/a%20b").status == 404
