from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from duetime.contract.bulk import bodies
from duetime.contract.bulk.bodies import BulkCancel, read_filter_action
from duetime.contract.http import page_tokens, request_json
from duetime.environment_variables import Variable
from tests.functions.api.world import claimed_by_a_worker

if TYPE_CHECKING:
    from tests.clocks import StandingClock
    from tests.functions.api.gateway import Gateway

CANCEL = "/v1/tasks/cancel"
CHANGE = "/v1/tasks/update"
RETRY = "/v1/tasks/retry"
REPORTS = {"filter": {"type": "report"}}
RENAME = {**REPORTS, "update": {"name": "new"}}
ENDED = {"next_token": None, "confirmation_token": None}
"""The last fields of a response to an action that was not a dry run and has no more pages."""


def fill(api: Gateway, count: int = 3, **fields: Any) -> list[str]:  # noqa: ANN401 - fields of a task
    """Create tasks that are due in an hour and later, and return their ids."""
    return [api.create({"type": "report", "delay_seconds": 3_600 + number, **fields})["id"] for number in range(count)]


def state_of(api: Gateway, task_id: str) -> str:
    """The state of a task, as the API shows it."""
    state: str = api.send("GET", f"/v1/tasks/{task_id}").body["state"]
    return state


def test_tasks_are_cancelled_by_a_filter(api: Gateway) -> None:
    """A cancellation by filter cancels only tasks that match the filter's type, tags and due time."""
    wanted = fill(api, 2, tags={"team": "dba", "x": "y"})
    spared = [*fill(api, 1), *fill(api, 1, type="mail", tags={"team": "dba"})]
    late = fill(api, 1, tags={"team": "dba"}, delay_seconds=9_000)
    body = {"filter": {"type": "report", "tags": {"team": "dba"}, "due_before": "2026-11-21T04:00:00Z"}}
    answer = api.send("POST", CANCEL, body)
    assert (answer.status, answer.body) == (
        200,
        {"examined": 5, "matched": 2, "affected": 2, "refused": {}, **ENDED},
    )
    assert {state_of(api, each) for each in wanted} == {"cancelled"}
    assert {state_of(api, each) for each in (*spared, *late)} == {"scheduled"}


def test_tasks_are_changed_by_a_filter(api: Gateway) -> None:
    """An update by filter changes each task as a single update would."""
    tasks = fill(api, 3)
    answer = api.send("POST", CHANGE, {**REPORTS, "update": {"priority": "low", "due_at": "2026-12-01T09:00:00Z"}})
    assert (answer.status, answer.body["affected"]) == (200, 3)
    found = [api.send("GET", f"/v1/tasks/{each}").body for each in tasks]
    assert {(task["priority"], task["due_at"]) for task in found} == {("low", "2026-12-01T09:00:00.000Z")}


def test_a_request_by_filter_continues_by_its_token(api: Gateway) -> None:
    """A request by filter continues by token until all pages are done, and a token works only for its own request."""
    fill(api, 5)
    first = api.send("POST", CANCEL, {**REPORTS, "limit": 2}).body
    assert (first["affected"], bool(first["next_token"])) == (2, True)
    token = first["next_token"]
    for path, body in (
        (CANCEL, {"filter": {"type": "mail"}}),
        (CANCEL, {**REPORTS, "order": "asc"}),
        (CANCEL, {"filter": {}, "all": True}),
        (CHANGE, RENAME),
    ):
        refused = api.send("POST", path, {**body, "next_token": token})
        assert (refused.status, list(refused.faults)) == (422, ["next_token"])
    other = api.send("POST", CANCEL, {**REPORTS, "next_token": token}, {"X-Duetime-Owner": "you"})
    assert list(other.faults) == ["next_token"]
    second = api.send("POST", CANCEL, {**REPORTS, "limit": 2, "next_token": token, "force": True}).body
    last = api.send("POST", CANCEL, {**REPORTS, "next_token": second["next_token"]}).body
    assert [second["affected"], last["affected"], last["next_token"]] == [2, 1, None]
    assert api.send("POST", CANCEL, REPORTS).body["matched"] == 0


def test_refusals_are_counted_by_their_codes(api: Gateway, clock: StandingClock) -> None:
    """A running task is counted as refused, unless `force` is set, which asks the task to stop."""
    running = api.create()["id"]
    claimed_by_a_worker(running, clock)
    fill(api, 1)
    answer = api.send("POST", CANCEL, REPORTS).body
    assert (answer["matched"], answer["affected"], answer["refused"]) == (2, 1, {"state_conflict": 1})
    assert api.send("POST", CANCEL, {**REPORTS, "force": True}).body["affected"] == 1
    assert api.send("GET", f"/v1/tasks/{running}").body["requested_action"] == "cancel"


def test_an_empty_filter_requires_all(api: Gateway) -> None:
    """An empty filter requires `all`, and `all` cannot be combined with conditions."""
    tasks = fill(api, 2)
    for body, field in (
        ({"filter": {}}, "filter"),
        ({"filter": {"tags": {}}}, "filter.tags"),
        ({"filter": {"type": "report", "tags": {}}}, "filter.tags"),
        ({"filter": {"tags": {}}, "all": True}, "filter.tags"),
        ({**REPORTS, "all": True}, "all"),
    ):
        refused = api.send("POST", CANCEL, body)
        assert (refused.status, list(refused.faults)) == (422, [field])
    assert {state_of(api, each) for each in tasks} == {"scheduled"}
    assert api.send("POST", CANCEL, {"filter": {}, "all": True, "dry_run": True}).body["matched"] == 2
    assert {state_of(api, each) for each in tasks} == {"scheduled"}
    assert api.send("POST", CANCEL, {"filter": {}, "all": True}).body["affected"] == 2


@pytest.mark.parametrize(("path", "more"), [(CANCEL, {}), (CHANGE, {"update": {"name": "new"}}), (RETRY, {})])
def test_every_action_by_filter_needs_a_condition(api: Gateway, path: str, more: dict[str, Any]) -> None:
    """An action by filter requires a condition; neither nulls nor other parameters count as conditions."""
    for filter_, code in (
        ({}, "required"),
        ({"type": None, "name": None}, "required"),
        ({"tags": {}}, "too_short"),
    ):
        refused = api.send("POST", path, {"filter": filter_, "order": "asc", "limit": 5, **more})
        assert (refused.status, [fault["code"] for fault in refused.problem["errors"]]) == (422, [code])
    assert list(api.send("POST", path, {"all": True, **more}).faults) == ["filter"]
    assert api.send("POST", path, {"filter": {}, "all": True, **more}).status == 200


def test_a_forged_confirmation_token_is_rejected(api: Gateway, environ: dict[str, str]) -> None:
    """A forged confirmation token with invalid values is refused, even if its checksum is correct."""
    body = read_filter_action(BulkCancel, request_json.read(json.dumps(REPORTS)))
    for text, status in (("7", 200), ("seven", 422), ("-", 422)):
        token = page_tokens.text_token(text, bodies._scope(body, "me", environ[Variable.TABLE]))
        answer = api.send("POST", CANCEL, {**REPORTS, "confirmation_token": token}, {"X-Duetime-Owner": "me"})
        assert answer.status == status, text


def test_an_action_by_filter_ignores_other_owners_tasks(api: Gateway) -> None:
    """An action by filter neither changes nor counts other owners' tasks."""
    mine = fill(api, 2)
    answer = api.send("POST", CANCEL, {"filter": {}, "all": True}, {"X-Duetime-Owner": "you"})
    assert answer.body == {"examined": 0, "matched": 0, "affected": 0, "refused": {}, **ENDED}
    assert {state_of(api, each) for each in mine} == {"scheduled"}


def test_an_error_for_a_change_that_no_task_allows_names_the_field(api: Gateway) -> None:
    """If no task allows a change, the error names the field, even if the error depends on the current time."""
    fill(api, 2)
    refused = api.send("POST", CHANGE, {**REPORTS, "update": {"due_at": "2037-01-01T00:00:00Z"}})
    assert (refused.status, list(refused.faults)) == (422, ["update.due_at"])


def test_a_change_that_some_task_does_not_allow_is_counted(api: Gateway) -> None:
    """If some tasks do not allow a change, the other tasks are changed, and the response has both counts."""
    graph = {"nodes": {"a": {"type": "x"}}}
    fill(api, 1, delay_seconds=9_000)
    (topology,) = fill(api, 1, target={"kind": "topology"}, payload=graph)
    answer = api.send("POST", CHANGE, {**REPORTS, "update": {"payload": 7}})
    assert answer.status == 200
    assert (answer.body["affected"], answer.body["refused"]) == (1, {"fields_invalid": 1})
    assert api.send("GET", f"/v1/tasks/{topology}").body["payload"] == graph


BAD: list[tuple[str, dict[str, Any], list[str]]] = [
    (CANCEL, {}, ["filter"]),
    (CANCEL, {"filter": None}, ["filter"]),
    (CANCEL, {"filter": []}, ["filter"]),
    (CANCEL, {"filter": {"state": "done"}}, ["filter.state"]),
    (CANCEL, {"filter": {"state": "succeeded"}}, ["filter.state"]),
    (CANCEL, {"filter": {"ids": ["x"]}}, ["filter.ids"]),
    (CANCEL, {"filter": {"tag": "a:b"}}, ["filter.tag"]),
    (CANCEL, {"filter": {"tags": ["a:b"]}}, ["filter.tags"]),
    (CANCEL, {"filter": {"due_after": "yesterday"}}, ["filter.due_after"]),
    (CANCEL, {"filter": {"due_before": 7}}, ["filter.due_before"]),
    (CANCEL, {"filter": {"type": "a b"}}, ["filter.type"]),
    (CANCEL, {"filter": {"name": "\x00"}}, ["filter.name"]),
    (CANCEL, {"filter": {"name": ""}}, ["filter.name"]),
    (CANCEL, {**REPORTS, "owner": "you"}, ["owner"]),
    (CANCEL, {**REPORTS, "update": {}}, ["update"]),
    (CANCEL, {**REPORTS, "limit": 0}, ["limit"]),
    (CANCEL, {**REPORTS, "limit": 101}, ["limit"]),
    (CANCEL, {**REPORTS, "limit": "1"}, ["limit"]),
    (CANCEL, {**REPORTS, "per_second": 0}, ["per_second"]),
    (CANCEL, {**REPORTS, "per_second": 0.05}, ["per_second"]),
    (CANCEL, {**REPORTS, "per_second": 1e9}, ["per_second"]),
    (CANCEL, {**REPORTS, "per_second": "fast"}, ["per_second"]),
    (CANCEL, {**REPORTS, "next_token": "nonsense"}, ["next_token"]),
    (CANCEL, {**REPORTS, "next_token": 5}, ["next_token"]),
    (CANCEL, {**REPORTS, "force": "true"}, ["force"]),
    (CANCEL, {**REPORTS, "dry_run": 1}, ["dry_run"]),
    (CANCEL, {**REPORTS, "order": "up"}, ["order"]),
    (CHANGE, REPORTS, ["update"]),
    (CHANGE, {**REPORTS, "update": {}}, ["update"]),
    (CHANGE, {**REPORTS, "update": {"type": "mail"}}, ["update.type"]),
    (
        CHANGE,
        {**REPORTS, "update": {"due_at": "2026-12-01T00:00:00Z", "delay_seconds": 1}},
        ["update.due_at", "update.delay_seconds"],
    ),
    (CHANGE, {**REPORTS, "update": {"retry": {"max_attempts": 0}}}, ["update.retry.max_attempts"]),
    (CHANGE, {**RENAME, "force": True}, ["force"]),
]


@pytest.mark.parametrize(("path", "body", "fields"), BAD)
def test_an_error_for_an_invalid_request_by_filter_names_each_faulty_field(
    api: Gateway, path: str, body: dict[str, Any], fields: list[str]
) -> None:
    """Invalid requests by filter name each faulty field, and no task is changed."""
    (task,) = fill(api, 1)
    refused = api.send("POST", path, body)
    assert (refused.status, list(refused.faults)) == (422, fields)
    assert api.send("GET", f"/v1/tasks/{task}").body["version"] == 1


def test_a_payload_in_an_update_by_filter_may_have_the_usual_depth(api: Gateway) -> None:
    """A payload in an update by filter may be nested as deeply as usual, and a deeper payload is refused."""
    fill(api, 1)
    for levels, status in ((62, 200), (80, 422)):
        payload: Any = 1
        for _ in range(levels):
            payload = [payload]
        assert api.send("POST", CHANGE, {**REPORTS, "update": {"payload": payload}}).status == status


def test_other_methods_are_not_supported(api: Gateway) -> None:
    """The paths of actions by filter accept only POST."""
    for path in (CANCEL, CHANGE):
        put = api.send("PUT", path, REPORTS)
        assert (put.status, put.headers["Allow"]) == (405, "POST, OPTIONS")
        assert api.send("GET", path).status == 404
        assert list(api.send("POST", path, REPORTS, query="limit=1").faults) == ["limit"]
