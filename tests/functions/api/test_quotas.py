"""Tests of quotas over REST: who can see and set quotas, and how requests that exceed a quota are answered."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from duetime.composition import composed
from duetime.composition.core import CoreServices
from duetime.domain.limits import MAX_QUOTA, MAX_QUOTA_OWNERS
from duetime.domain.quotas import OwnerQuotas, Quota, Quotas, StoredQuotas
from duetime.environment_variables import Variable

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.functions.api.gateway import Gateway

PATH = "/v1/quotas"
ANN = f"{PATH}/ann"
UNSET: dict[str, Any] = {quota.value: None for quota in Quota}
DEFAULTS = {"open_tasks": 1_000, "schedules": 2}
SCHEDULE = {"rate": "1h", "task": {"type": "report"}}
BAD: list[tuple[dict[str, Any], str]] = [
    ({"creates_per_second": 0}, "creates_per_second"),
    ({"open_tasks": MAX_QUOTA + 1}, "open_tasks"),
    ({"schedules": "5"}, "schedules"),
    ({"long_polls": 1.5}, "long_polls"),
    ({"creates": 5}, "creates"),
    ({"reason": "x" * 129}, "reason"),
]


@pytest.fixture
def ops(environ: dict[str, str], compose: Callable[[], None], api: Gateway) -> Gateway:
    """A gateway to a deployment with quotas, called by an operator."""
    environ |= {Variable.OPERATORS: "boss", Variable.QUOTAS: json.dumps(DEFAULTS), Variable.SUMMARY_SPREAD: "1"}
    compose()
    return replace(api, headers={"X-Duetime-Owner": "boss"})


@pytest.fixture
def ann(ops: Gateway) -> Gateway:
    """A gateway to a deployment with quotas, called by another owner."""
    return replace(ops, headers={"X-Duetime-Owner": "ann"})


def test_quotas_are_set_seen_and_deleted(ops: Gateway) -> None:
    """A response shows an owner's own quotas, its effective quotas and its usage; a deletion restores the defaults."""
    put = ops.send("PUT", ANN, {"creates_per_second": 20, "schedules": 5, "reason": "a loop"})
    own = {**UNSET, "creates_per_second": 20, "schedules": 5}
    by = {"reason": "a loop", "updated_at": "2026-11-21T02:33:07.250Z", "updated_by": "boss"}
    used = {"creates_per_second": 0.0, "open_tasks": 0, "schedules": 0}
    shown = {"owner": "ann", "own": own, **by}
    assert (put.status, put.body) == (200, {**shown, "limits": {**own, "open_tasks": 1_000}, "used": used})
    assert ops.send("GET", ANN).body == put.body
    assert ops.send("GET", PATH).body == {"defaults": {**UNSET, **DEFAULTS}, "owners": [shown]}
    deleted = ops.send("DELETE", ANN)
    assert deleted.body["own"] == own
    assert ops.send("GET", ANN).body["limits"] == {**UNSET, **DEFAULTS}
    again = ops.send("DELETE", ANN)
    assert (again.status, again.problem["code"]) == (404, "quotas_not_found")


def test_quotas_are_replaced_as_a_whole(ops: Gateway) -> None:
    """Setting quotas replaces all of an owner's quotas; a body without limits deletes them."""
    ops.send("PUT", ANN, {"creates_per_second": 20})
    assert ops.send("PUT", ANN, {"long_polls": 3}).body["own"] == {**UNSET, "long_polls": 3}
    assert ops.send("PUT", ANN, {}).status == 200
    assert ops.send("GET", PATH).body["owners"] == []


def test_an_owner_can_read_but_not_set_its_quotas(ops: Gateway, ann: Gateway) -> None:
    """An owner sees its own quotas but not other owners' quotas, and only operators can set quotas."""
    ops.send("PUT", ANN, {"creates_per_second": 20})
    ops.send("PUT", f"{PATH}/bob", {"creates_per_second": 20})
    assert [each["owner"] for each in ann.send("GET", PATH).body["owners"]] == ["ann"]
    assert ann.send("GET", ANN).body["limits"]["creates_per_second"] == 20
    other = ann.send("GET", f"{PATH}/bob")
    assert (other.status, other.problem["code"]) == (404, "quotas_not_found")
    for method, body in (("PUT", {"creates_per_second": 99}), ("DELETE", None)):
        refused = ann.send(method, ANN, body)
        assert (refused.status, refused.problem["code"]) == (403, "operator_required")


def test_settings_show_a_caller_its_quotas(ops: Gateway, ann: Gateway) -> None:
    """The settings show a caller its quotas with their usage."""
    ops.send("PUT", ANN, {"schedules": 7})
    found = ann.send("GET", "/v1/settings").body["quotas"]
    assert found == [
        {"quota": "open_tasks", "limit": 1_000, "used": 0},
        {"quota": "schedules", "limit": 7, "used": 0},
    ]


@pytest.mark.parametrize(("body", "field"), BAD)
def test_an_error_for_an_invalid_quota_names_the_field(ops: Gateway, body: dict[str, Any], field: str) -> None:
    """An error for an invalid quota names the field, and no quota changes."""
    refused = ops.send("PUT", ANN, body)
    assert (refused.status, refused.problem["errors"][0]["field"]) == (422, field)
    assert ops.send("GET", PATH).body["owners"] == []


def test_an_error_for_an_invalid_owner_in_a_path_names_the_field(ops: Gateway) -> None:
    """If a path has an invalid owner, the error names `owner`."""
    refused = ops.send("GET", f"{PATH}/a b")
    assert (refused.status, refused.problem["errors"][0]["field"]) == (400, "owner")


def test_quotas_of_too_many_owners_are_refused(ops: Gateway) -> None:
    """If the maximum number of owners have quotas, quotas can be set only for these owners."""
    full = {f"o{number}": OwnerQuotas(f"o{number}", Quotas(schedules=1)) for number in range(MAX_QUOTA_OWNERS)}
    assert composed(CoreServices).stores.quotas.save(StoredQuotas(full), "nonce")
    refused = ops.send("PUT", ANN, {"schedules": 1})
    assert (refused.status, refused.problem["code"]) == (409, "quotas_full")
    assert ops.send("PUT", f"{PATH}/o7", {"schedules": 2}).status == 200


def test_open_tasks_cannot_be_limited_without_the_summary(
    environ: dict[str, str], compose: Callable[[], None], ops: Gateway
) -> None:
    """Without the summary, open tasks cannot be limited, and the error names the missing setting."""
    environ[Variable.SUMMARY_SPREAD] = "0"
    compose()
    refused = ops.send("PUT", ANN, {"open_tasks": 5})
    assert refused.problem["errors"][0]["field"] == "open_tasks"
    assert "summary_spread" in refused.problem["errors"][0]["reason"]


def test_quotas_can_be_neither_read_nor_set_without_the_setting(
    environ: dict[str, str], compose: Callable[[], None], api: Gateway
) -> None:
    """If the deployment has no quotas, even operators can neither see nor set quotas."""
    environ[Variable.OPERATORS] = "*"
    compose()
    for method, body in (("GET", None), ("PUT", {"schedules": 1}), ("DELETE", None)):
        refused = api.send(method, ANN, body)
        assert (refused.status, refused.problem["code"]) == (409, "quotas_off")
    assert api.send("GET", "/v1/settings").body["quotas"] is None


def test_a_schedule_beyond_the_quota_is_rejected_until_another_is_deleted(ann: Gateway) -> None:
    """A schedule beyond the quota is refused with the quota's name, but is accepted after a schedule is deleted."""
    made = [ann.send("POST", "/v1/schedules", {"name": name, **SCHEDULE}) for name in ("a", "b", "c")]
    assert [each.status for each in made] == [201, 201, 429]
    assert (made[2].problem["code"], made[2].problem["quota"]) == ("quota_exceeded", "schedules")
    assert made[2].headers["Retry-After"] == "5"
    ann.send("DELETE", "/v1/schedules/a")
    assert ann.send("POST", "/v1/schedules", {"name": "c", **SCHEDULE}).status == 201
