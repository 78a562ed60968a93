from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest

from duetime.composition import composed
from duetime.composition.tasks import TaskServices, TopologyServices
from duetime.domain.ids import TaskId
from duetime.domain.tasks.attempt_results import Succeeded
from duetime.domain.topologies import inputs
from duetime.environment_variables import Variable
from tests.functions.api.gateway import Answer, Gateway
from tests.functions.api.world import claimed_by_a_worker

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.clocks import StandingClock
    from tests.fakes.session import FakeSession

TYPE = "pulled"
LEASES = "/v1/leases"
BACK_AFTER = 6_000
"""How long after the lease, in ms, the message is visible again if the worker sends no heartbeat."""


@pytest.fixture
def environ(environ: dict[str, str], session: FakeSession) -> dict[str, str]:
    """The function's environment, with one type that everyone may pull, and one type that only Ann may pull."""
    sqs = session.client("sqs")
    urls = {name: sqs.create_queue(QueueName=f"{name}-{uuid4().hex[:8]}")["QueueUrl"] for name in (TYPE, "anns")}
    pullers = {TYPE: ["*"], "anns": ["ann"]}
    return {**environ, Variable.PULLED_QUEUES: json.dumps(urls), Variable.PULLERS: json.dumps(pullers)}


def leased(api: Gateway, **fields: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - any field of the request
    """Lease tasks, assert that this succeeds, and return the leases."""
    answer = api.send("POST", LEASES, {"types": [TYPE], **fields})
    assert answer.status == 200, answer.text
    leases: list[dict[str, Any]] = answer.body["leases"]
    return leases


def tell(api: Gateway, lease: dict[str, Any] | str, what: str, body: object = None) -> Answer:
    """Report on a lease, and return the response."""
    token = lease if isinstance(lease, str) else lease["id"]
    return api.send("POST", f"{LEASES}/{token}/{what}", body)


def task_of(api: Gateway, task_id: str) -> dict[str, Any]:
    """A task as the API shows it to the task's owner."""
    answer: dict[str, Any] = api.send("GET", f"/v1/tasks/{task_id}").body
    return answer


def one_lease(api: Gateway, **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - any field of a task
    """Create a pulled task, and lease the task."""
    api.create({"type": TYPE, **fields})
    (lease,) = leased(api)
    return lease


def test_a_task_of_a_pulled_type_is_leased_and_completed(api: Gateway, clock: StandingClock) -> None:
    """A lease shows the task's payload and fence, and the result that the worker reports ends the task."""
    task = api.create({"type": TYPE, "payload": {"n": [1, "\u00e9"]}})
    assert task["target"] == {"kind": "pull"}
    (lease,) = leased(api, lease_seconds=20, worker="w1")
    assert lease["task"]["payload"] == {"n": [1, "\u00e9"]}
    assert lease["checkpoint"] is None
    assert (lease["task"]["id"], lease["task"]["fence"], lease["task"]["state"]) == (task["id"], 1, "running")
    assert lease["task"]["lease"] == {"worker": "w1", "expires_at": lease["expires_at"]}
    clock.at += 7
    answer = tell(api, lease, "complete", {"result": {"rows": 3}})
    assert (answer.status, answer.body["state"], answer.body["expires_at"]) == (200, "succeeded", None)
    done = task_of(api, task["id"])
    assert (done["state"], done["result"], done["attempt"]) == ("succeeded", {"rows": 3}, 1)
    assert done["finished_at"] is not None
    (attempt,) = api.send("GET", f"/v1/tasks/{task['id']}/attempts").body["attempts"]
    assert (attempt["worker"], attempt["duration_ms"], attempt["outcome"]) == ("w1", 7, "succeeded")
    # The cost includes two writes, but no run time of a worker function.
    assert attempt["cost_dollars"] == pytest.approx(0.00000125)
    clock.at += 20_000 + BACK_AFTER
    assert leased(api) == []


@pytest.fixture
def child(api: Gateway, clock: StandingClock) -> str:
    """Create a pulled node with an input from a parent that has just ended, and return the node's task id."""
    nodes = {"top": {"type": "report"}, "pulled": {"type": TYPE, "depends_on": ["top"], "inputs": ["top"]}}
    topology = api.send("POST", "/v1/topologies", {"nodes": nodes}).body["id"]
    path = f"/v1/topologies/{topology}"
    claimed_by_a_worker(topology, clock)
    composed(TopologyServices).state_machine_steps.plan(TaskId(topology), 1)
    tasks = {key: node["task_id"] for key, node in api.send("GET", path).body["nodes"].items()}
    claimed_by_a_worker(tasks["top"], clock)
    composed(TopologyServices).node_finished.follow(
        composed(TaskServices).attempt_reports.notify("local", TaskId(tasks["top"]), 1, Succeeded(b'{"rows":[3]}'))
    )
    return str(tasks["pulled"])


def test_the_lease_of_a_pulled_node_has_the_inputs_by_parent(api: Gateway, child: str) -> None:
    """A pulled node's lease has the inputs by parent, and the leases of other tasks have null instead."""
    (lease,) = leased(api)
    assert (lease["task"]["id"], lease["inputs"]) == (child, {"top": {"rows": [3]}})
    assert one_lease(api)["inputs"] is None


def test_a_pulled_node_whose_inputs_are_too_large_fails(
    api: Gateway, child: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A pulled node whose inputs are too large fails with an error and is not leased, as a retry would not help."""
    monkeypatch.setattr(inputs, "MAX_INPUTS_BYTES", 10)
    assert leased(api) == []
    failed = task_of(api, child)
    assert (failed["state"], failed["error"]["type"], failed["attempt"]) == ("failed", "InputsTooLarge", 1)


def test_a_leased_task_is_not_given_to_another_worker(api: Gateway) -> None:
    """A leased task is not given to another worker during the lease."""
    one_lease(api)
    assert leased(api, max_tasks=10) == []


def test_a_worker_leases_no_more_tasks_than_it_asked_for(api: Gateway) -> None:
    """A worker leases three of five tasks, as requested, and then the other two tasks."""
    made = {api.create({"type": TYPE})["id"] for _ in range(5)}
    first, second = leased(api, max_tasks=3), leased(api, max_tasks=10)
    assert (len(first), len(second)) == (3, 2)
    assert {lease["task"]["id"] for lease in (*first, *second)} == made


def test_a_worker_leases_tasks_of_several_types_at_once(api: Gateway) -> None:
    """A worker that asks for two types at once gets tasks of both types."""
    ann = Gateway(headers={"X-Duetime-Owner": "ann"})
    made = {api.create({"type": name})["id"] for name in (TYPE, "anns")}
    leases = leased(ann, types=[TYPE, "anns"], max_tasks=2)
    assert {lease["task"]["id"] for lease in leases} == made


def test_a_task_of_a_pulled_type_may_have_another_target(api: Gateway) -> None:
    """A task of a pulled type with a different target is not leased, but its target can be changed to `pull`."""
    task = api.create({"type": TYPE, "target": {"kind": "handler"}})
    assert leased(api) == []
    changed = api.send("PATCH", f"/v1/tasks/{task['id']}", {"target": {"kind": "pull"}})
    assert changed.body["target"] == {"kind": "pull"}
    (lease,) = leased(api)
    assert lease["task"]["id"] == task["id"]


def test_a_pull_target_is_rejected_for_a_type_that_is_not_pulled(api: Gateway) -> None:
    """Creations and changes with a pull target for a type that is not pulled are refused with the field."""
    answer = api.send("POST", "/v1/tasks", {"type": "report", "target": {"kind": "pull"}})
    assert (answer.status, "'report'" in answer.faults["target"]) == (422, True)
    task = api.create({"type": "report", "delay_seconds": 60})
    answer = api.send("PATCH", f"/v1/tasks/{task['id']}", {"target": {"kind": "pull"}})
    assert (answer.status, list(answer.faults)) == (422, ["target"])
    batch = api.send("POST", "/v1/tasks/batch", {"tasks": [{"type": "report", "target": {"kind": "pull"}}]})
    assert batch.body["results"][0]["problem"]["errors"][0]["field"] == "tasks[0].target"


def test_a_pulled_task_has_no_rollback(api: Gateway) -> None:
    """A pulled task cannot have a rollback, neither at its creation nor later."""
    answer = api.send("POST", "/v1/tasks", {"type": TYPE, "rollback_on_failure": True})
    assert (answer.status, list(answer.faults)) == (422, ["rollback_on_failure"])
    lease = one_lease(api)
    tell(api, lease, "complete", {})
    answer = api.send("POST", f"/v1/tasks/{lease['task']['id']}/rollback")
    assert (answer.status, answer.problem["code"]) == (409, "state_conflict")


def test_a_heartbeat_renews_the_lease_and_returns_the_requested_action(api: Gateway, clock: StandingClock) -> None:
    """A heartbeat renews the lease and stores progress, and the response has the action that a user requested."""
    lease = one_lease(api)
    clock.at += 20_000
    answer = tell(api, lease, "heartbeat", {"percent": 40, "message": "half way"})
    assert (answer.status, answer.body["requested_action"]) == (200, None)
    assert answer.body["expires_at"] > lease["expires_at"]
    task_id = lease["task"]["id"]
    assert task_of(api, task_id)["progress"] == {"percent": 40, "message": "half way"}
    assert api.send("POST", f"/v1/tasks/{task_id}/cancel", {"force": True}).status == 202
    assert tell(api, lease, "heartbeat").body["requested_action"] == "cancel"
    answer = tell(api, lease, "cancel")
    assert (answer.status, answer.body["state"]) == (200, "cancelled")
    assert tell(api, lease, "cancel").body["state"] == "cancelled"


def test_a_heartbeat_does_not_renew_beyond_the_timeout(api: Gateway, clock: StandingClock) -> None:
    """A lease ends with the attempt's timeout, after which heartbeats are refused."""
    lease = one_lease(api, timeout_seconds=40)
    clock.at += 29_000
    renewed = tell(api, lease, "heartbeat", {})
    started = task_of(api, lease["task"]["id"])["started_at"]
    assert _seconds_between(started, renewed.body["expires_at"]) == 40
    clock.at += 11_000
    answer = tell(api, lease, "heartbeat", {})
    assert (answer.status, answer.problem["code"]) == (409, "attempt_overdue")


def _seconds_between(first: str, last: str) -> float:
    from datetime import datetime  # noqa: PLC0415 - used by this line alone

    return (datetime.fromisoformat(last) - datetime.fromisoformat(first)).total_seconds()


def test_a_failure_is_retried_by_the_policy(api: Gateway, clock: StandingClock) -> None:
    """After a failure, a pulled task waits for its next attempt, which has a new fence."""
    lease = one_lease(api, retry={"max_attempts": 2, "initial_seconds": 0})
    failure = {"error": {"type": "Boom", "message": "no luck"}}
    assert tell(api, lease, "fail", failure).body["state"] == "waiting"
    assert tell(api, lease, "fail", failure).body["state"] == "waiting"
    clock.at += 1_000
    (again,) = leased(api)
    assert (again["task"]["attempt"], again["task"]["fence"]) == (2, 2)
    assert tell(api, again, "fail", failure).body["state"] == "failed"
    assert task_of(api, lease["task"]["id"])["error"] == failure["error"]


def test_a_failure_that_is_not_retriable_ends_the_task(api: Gateway) -> None:
    """A failure that is not retriable ends the task without another attempt."""
    lease = one_lease(api)
    failure = {"error": {"type": "Unretriable", "message": "never"}, "retriable": False}
    assert tell(api, lease, "fail", failure).body["state"] == "failed"


def test_retry_in_seconds_replaces_the_wait_of_the_retry_policy(api: Gateway, clock: StandingClock) -> None:
    """`retry_in_seconds` replaces the retry policy's wait, and the attempt counts as one of the task's attempts."""
    lease = one_lease(api, retry={"max_attempts": 2, "initial_seconds": 0})
    failure = {"error": {"type": "RetryIn", "message": "the bank is closed"}, "retry_in_seconds": 60.5}
    assert tell(api, lease, "fail", failure).body["state"] == "waiting"
    clock.at += 50_000
    assert leased(api) == []
    clock.at += 11_000
    (again,) = leased(api)
    assert again["task"]["attempt"] == 2
    assert tell(api, again, "fail", failure).body["state"] == "failed"


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"retry_in_seconds": 0}, "out_of_range"),
        ({"retry_in_seconds": 86_400.5}, "out_of_range"),
        ({"retry_in_seconds": "60"}, "wrong_type"),
        ({"retry_in_seconds": 60, "retriable": False}, "conflict"),
    ],
)
def test_an_error_for_an_invalid_retry_in_seconds_names_the_field(
    api: Gateway, fields: dict[str, Any], code: str
) -> None:
    """An error for an invalid `retry_in_seconds` names the field, and the lease stays valid."""
    lease = one_lease(api)
    answer = tell(api, lease, "fail", {"error": {"type": "RetryIn", "message": ""}, **fields})
    assert [(each["field"], each["code"]) for each in answer.problem["errors"]] == [("retry_in_seconds", code)]
    assert tell(api, lease, "complete", {}).body["state"] == "succeeded"


def test_a_released_task_is_leased_again_at_once_and_costs_no_attempt(api: Gateway) -> None:
    """A released task can be leased again at once, and the release uses no attempt."""
    lease = one_lease(api)
    assert tell(api, lease, "release").body["state"] == "waiting"
    assert tell(api, lease, "release").body["state"] == "waiting"
    (again,) = leased(api)
    assert (again["task"]["id"], again["task"]["attempt"], again["task"]["fence"]) == (lease["task"]["id"], 1, 2)
    answer = tell(api, lease, "release")
    assert (answer.status, answer.problem["code"]) == (409, "fence_mismatch")


def test_the_checkpoint_of_a_paused_attempt_is_given_to_the_next_attempt(api: Gateway) -> None:
    """A worker can pause a task with a checkpoint only if a user requested a pause.

    The next attempt gets the checkpoint.
    """
    lease = one_lease(api)
    task_id = lease["task"]["id"]
    refused = tell(api, lease, "pause", {"checkpoint": {"row": 7}})
    assert (refused.status, refused.problem["code"]) == (409, "state_conflict")
    api.send("POST", f"/v1/tasks/{task_id}/pause")
    assert tell(api, lease, "pause", {"checkpoint": {"row": 7}}).body["state"] == "paused"
    assert tell(api, lease, "pause", {"checkpoint": {"row": 7}}).body["state"] == "paused"
    api.send("POST", f"/v1/tasks/{task_id}/resume")
    (again,) = leased(api)
    assert (again["checkpoint"], again["task"]["attempt"]) == ({"row": 7}, 1)


def test_a_checkpoint_in_a_heartbeat_is_given_to_the_next_attempt(api: Gateway, clock: StandingClock) -> None:
    """The next attempt gets the checkpoint of a heartbeat, even if a later heartbeat had no checkpoint."""
    lease = one_lease(api, retry={"max_attempts": 3, "initial_seconds": 0})
    assert tell(api, lease, "heartbeat", {"checkpoint": {"row": 7}}).status == 200
    assert tell(api, lease, "heartbeat", {"percent": 5}).status == 200
    assert tell(api, lease, "fail", {"error": {"type": "Boom"}}).body["state"] == "waiting"
    clock.at += BACK_AFTER
    (again,) = leased(api, lease_seconds=60)
    assert (again["checkpoint"], again["task"]["attempt"]) == ({"row": 7}, 2)
    clock.at -= 1_000
    assert tell(api, again, "heartbeat", {"checkpoint": "x" * 4_000}).status == 200
    assert tell(api, again, "fail", {"error": {"type": "Boom"}}).body["state"] == "waiting"
    clock.at += BACK_AFTER
    (last,) = leased(api)
    assert last["checkpoint"] == "x" * 4_000


def test_the_first_stored_result_of_a_step_is_kept(api: Gateway, clock: StandingClock) -> None:
    """A step's first stored result is kept. An attempt that lost its lease can still store the result of its step."""
    lease = one_lease(api, retry={"max_attempts": 3, "initial_seconds": 0})
    first = _put_step(api, lease, "charge", {"result": {"id": 7}, "duration_ms": 250})
    assert (first.status, first.body) == (200, {"name": "charge", "result": {"id": 7}})
    clock.at += 30_000 + BACK_AFTER
    (again,) = leased(api)
    assert again["task"]["fence"] == 2
    assert _put_step(api, again, "charge", {"result": 8}).body["result"] == {"id": 7}
    assert _put_step(api, lease, "ship").body == {"name": "ship", "result": None}
    steps = api.send("GET", f"{LEASES}/{again['id']}/steps").body["steps"]
    assert steps == [first.body, {"name": "ship", "result": None}]
    told = api.send("GET", f"/v1/tasks/{lease['task']['id']}/steps").body["steps"]
    assert [(step["name"], step["fence"], step["duration_ms"]) for step in told] == [("charge", 1, 250), ("ship", 1, 0)]
    assert tell(api, again, "complete", {"result": 1}).status == 200
    refused = _put_step(api, again, "late")
    assert (refused.status, refused.problem["code"]) == (409, "fence_mismatch")


@pytest.mark.parametrize(
    ("name", "body", "status"),
    [
        ("charge", {"result": "x" * 32_767}, 422),
        ("charge", {"duration_ms": -1}, 422),
        ("charge", {"id": 1}, 422),
        ("x" * 65, {}, 400),
        (".a", {}, 400),
    ],
)
def test_a_step_that_cannot_be_stored_is_refused(api: Gateway, name: str, body: object, status: int) -> None:
    """A step whose result is too large, or that has an unknown field or an invalid name, is refused."""
    assert _put_step(api, one_lease(api), name, body).status == status


def _put_step(api: Gateway, lease: dict[str, Any], name: str, body: object = None) -> Answer:
    """Store a step's result, and return the response."""
    return api.send("PUT", f"{LEASES}/{lease['id']}/steps/{name}", body or {})


def test_a_worker_cannot_cancel_a_task_unless_a_user_requested_it(api: Gateway) -> None:
    """A worker can end a task as cancelled only after a user has requested the cancellation."""
    answer = tell(api, one_lease(api), "cancel")
    assert (answer.status, answer.problem["code"]) == (409, "state_conflict")


def test_a_repeated_completion_returns_the_same_response(api: Gateway) -> None:
    """A repeated completion with the same result returns the same response, and a different outcome is refused."""
    lease = one_lease(api)
    for _ in range(2):
        assert tell(api, lease, "complete", {"result": 1}).body["state"] == "succeeded"
    for what, body in (("complete", {"result": 2}), ("fail", {"error": {"type": "Boom"}})):
        answer = tell(api, lease, what, body)
        assert (answer.status, answer.problem["code"]) == (409, "outcome_conflict")
    answer = tell(api, lease, "release")
    assert (answer.status, answer.problem["code"]) == (409, "fence_mismatch")


def test_a_late_result_counts_if_no_other_attempt_has_begun(api: Gateway, clock: StandingClock) -> None:
    """A result that is reported after the lease has ended is accepted if no other attempt has begun."""
    late = one_lease(api)
    clock.at += 60_000
    assert tell(api, late, "complete", {"result": 1}).body["state"] == "succeeded"


def test_reports_of_a_worker_that_lost_its_task_are_rejected(api: Gateway, clock: StandingClock) -> None:
    """Once another worker has the task, all reports from the first worker are refused."""
    first = one_lease(api)
    assert tell(api, first, "heartbeat", {}).status == 200
    clock.at += 30_000 + BACK_AFTER
    (second,) = leased(api)
    assert (second["task"]["fence"], second["task"]["attempt"]) == (2, 2)
    error = {"error": {"type": "Boom"}}
    reports = {"heartbeat": {}, "complete": {"result": 1}, "fail": error, "release": None, "cancel": {}, "pause": {}}
    for what, body in reports.items():
        answer = tell(api, first, what, body)
        assert (answer.status, answer.problem["code"]) == (409, "fence_mismatch")
    assert tell(api, second, "complete", {"result": 2}).body["state"] == "succeeded"


def _fields(token: str) -> list[Any]:
    fields: list[Any] = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
    return fields


def _token(*fields: object) -> str:
    return base64.urlsafe_b64encode(json.dumps(fields).encode()).rstrip(b"=").decode()


def test_a_task_is_not_leased_before_its_due_time(api: Gateway, clock: StandingClock) -> None:
    """If a message arrives slightly early, the request waits until the task's due time before it leases the task."""
    due_at = clock.at + 1_050
    api.create({"type": TYPE, "delay_seconds": 1.05})
    (lease,) = leased(api, wait_seconds=3)
    assert clock.at >= due_at
    assert lease["task"]["lateness_ms"] == 0


BAD_REQUESTS: dict[str, tuple[dict[str, Any], str]] = {
    "no types": ({}, "types"),
    "empty types": ({"types": []}, "types"),
    "too many types": ({"types": [f"t{number}" for number in range(11)]}, "types"),
    "a type twice": ({"types": [TYPE, TYPE]}, "types"),
    "a strange type": ({"types": ["a b"]}, "types[0]"),
    "no list": ({"types": TYPE}, "types"),
    "none wanted": ({"types": [TYPE], "max_tasks": 0}, "max_tasks"),
    "too many wanted": ({"types": [TYPE], "max_tasks": 11}, "max_tasks"),
    "a number as text": ({"types": [TYPE], "max_tasks": "1"}, "max_tasks"),
    "a fraction": ({"types": [TYPE], "max_tasks": 1.5}, "max_tasks"),
    "too long a wait": ({"types": [TYPE], "wait_seconds": 21}, "wait_seconds"),
    "a wait below nothing": ({"types": [TYPE], "wait_seconds": -1}, "wait_seconds"),
    "too short a lease": ({"types": [TYPE], "lease_seconds": 4}, "lease_seconds"),
    "too long a lease": ({"types": [TYPE], "lease_seconds": 901}, "lease_seconds"),
    "too long a name": ({"types": [TYPE], "worker": "x" * 41}, "worker"),
    "a control character": ({"types": [TYPE], "worker": "a\nb"}, "worker"),
    "an unknown field": ({"types": [TYPE], "owner": "ann"}, "owner"),
}


@pytest.mark.parametrize(("body", "field"), BAD_REQUESTS.values(), ids=BAD_REQUESTS)
def test_an_error_for_an_invalid_lease_request_names_the_field(api: Gateway, body: dict[str, Any], field: str) -> None:
    """An error for an invalid lease request names the field, and no task is leased."""
    api.create({"type": TYPE})
    answer = api.send("POST", LEASES, body)
    assert (answer.status, list(answer.faults)) == (422, [field])
    assert len(leased(api)) == 1


@pytest.mark.parametrize("types", [["unheard-of"], ["anns"], [TYPE, "anns"]])
def test_types_that_a_caller_may_not_pull_are_refused(api: Gateway, types: list[str]) -> None:
    """Types that are not pulled, and types of other workers, are refused with the same error."""
    api.create({"type": "anns"})
    answer = api.send("POST", LEASES, {"types": types})
    assert (answer.status, answer.problem["code"]) == (403, "type_not_pulled")
    assert types[-1] in answer.problem["detail"]


def test_another_callers_lease_is_refused(api: Gateway) -> None:
    """Callers that may not pull a type cannot use leases of this type."""
    ann = Gateway(headers={"X-Duetime-Owner": "ann"})
    ann.create({"type": "anns"})
    (lease,) = leased(ann, types=["anns"])
    for what, body in (("heartbeat", {}), ("complete", {"result": 1}), ("fail", {"error": {"type": "B"}})):
        answer = tell(api, lease, what, body)
        assert (answer.status, answer.problem["code"]) == (403, "type_not_pulled")
    assert tell(ann, lease, "complete", {"result": 1}).status == 200


def test_a_forged_lease_id_cannot_end_a_task_of_another_type(api: Gateway) -> None:
    """A forged lease id cannot end a task of another type."""
    ann = Gateway(headers={"X-Duetime-Owner": "ann"})
    bodies = (
        {"type": "report", "delay_seconds": 60},
        {"type": TYPE, "target": {"kind": "handler"}},
        {"type": "anns"},
    )
    for body in bodies:
        task = ann.create(body)
        answer = tell(api, _token(1, task["id"], 1, "nonce", TYPE, 30, "r"), "complete", {"result": 1})
        assert (answer.status, answer.problem["code"]) == (404, "lease_not_found")
        assert task_of(ann, task["id"])["state"] == "scheduled"


def test_a_wrong_fence_is_refused(api: Gateway) -> None:
    """A lease id with a different fence is refused, and does not end an attempt."""
    lease = one_lease(api)
    version, task_id, fence, nonce, pull_queue, seconds, receipt = _fields(lease["id"])
    forged = _token(version, task_id, fence + 1, nonce, pull_queue, seconds, receipt)
    answer = tell(api, forged, "complete", {"result": 1})
    assert (answer.status, answer.problem["code"]) == (409, "fence_mismatch")
    assert task_of(api, task_id)["state"] == "running"


@pytest.mark.parametrize("nonce", ["", "abcdefghijkl"])
@pytest.mark.parametrize("what", ["heartbeat", "complete", "fail", "release", "cancel", "pause"])
def test_a_guessed_lease_without_the_nonce_is_not_found(api: Gateway, what: str, nonce: str) -> None:
    """A guessed lease without the nonce is not found, and the real lease is not affected."""
    lease = one_lease(api)
    version, task_id, fence, _nonce, pull_queue, seconds, receipt = _fields(lease["id"])
    forged = _token(version, task_id, fence, nonce, pull_queue, seconds, receipt)
    body = {"complete": {"result": 1}, "fail": {"error": {"type": "Boom", "message": ""}}}.get(what, {})
    answer = tell(api, forged, what, body)
    assert (answer.status, answer.problem["code"]) == (404, "lease_not_found")
    assert task_of(api, task_id)["state"] == "running"
    assert tell(api, lease["id"], "complete", {"result": 2}).body["state"] == "succeeded"


def test_the_fence_decides_the_outcome_if_a_leases_receipt_was_altered(api: Gateway) -> None:
    """If a lease's receipt was altered, reports with the current fence are accepted."""
    lease = one_lease(api)
    version, task_id, fence, nonce, pull_queue, seconds, _receipt = _fields(lease["id"])
    forged = _token(version, task_id, fence, nonce, pull_queue, seconds, "x" * 300)
    assert tell(api, forged, "heartbeat", {}).status == 200
    assert tell(api, forged, "complete", {"result": 1}).status == 200


_ID = "01M7XZ8CGJ0013P2ZBN3YDT3DX"
HOSTILE = {
    "a word": "lease",
    "one letter": "A",
    "not base64": "a" * 5,
    "not UTF-8": base64.urlsafe_b64encode(b"\xff\xfe[1]").decode().rstrip("="),
    "huge": "A" * 9_000,
    "deep": base64.urlsafe_b64encode(b"[" * 1_400).decode().rstrip("="),
    "no list": _token().replace("W10", "MQ"),
    "empty": _token(),
    "another version": _token(2, _ID, 1, "n", TYPE, 30, "r"),
    "no task id": _token(1, "x", 1, "n", TYPE, 30, "r"),
    "a task id beyond the calendar": _token(1, "7" + "Z" * 25, 1, "n", TYPE, 30, "r"),
    "fence zero": _token(1, _ID, 0, "n", TYPE, 30, "r"),
    "endless fence": _token(1, _ID, 10**38, "n", TYPE, 30, "r"),
    "fence as text": _token(1, _ID, "1", "n", TYPE, 30, "r"),
    "lease without end": _token(1, _ID, 1, "n", TYPE, 10**9, "r"),
    "receipt of controls": _token(1, _ID, 1, "n", TYPE, 30, "a\x00b"),
    "no receipt": _token(1, _ID, 1, "n", TYPE, 30, ""),
    "a long type": _token(1, _ID, 1, "n", "t" * 100, 30, "r"),
    "an unknown task": _token(1, _ID, 1, "n", TYPE, 30, "r"),
}


@pytest.mark.parametrize("token", HOSTILE.values(), ids=HOSTILE)
def test_an_invalid_lease_id_returns_404_without_details(api: Gateway, token: str) -> None:
    """An invalid lease id in a path returns 404 without details."""
    for what, body in (("heartbeat", {}), ("complete", {"result": 1}), ("release", None)):
        answer = tell(api, token, what, body)
        assert (answer.status, answer.problem["code"], answer.faults) == (404, "lease_not_found", {})


BAD_REPORTS: dict[str, tuple[str, object, str]] = {
    "a result of another name": ("complete", {"results": 1}, "results"),
    "a result too large": ("complete", {"result": "x" * 262_145}, "result"),
    "a failure without error": ("fail", {}, "error"),
    "an error without class": ("fail", {"error": {"message": "m"}}, "error.type"),
    "progress beyond": ("heartbeat", {"percent": 101}, "percent"),
    "a message alone": ("heartbeat", {"message": "m"}, "message"),
    "a checkpoint too large": ("pause", {"checkpoint": "x" * 4_097}, "checkpoint"),
    "fields where there are none": ("release", {"why": 1}, "why"),
    "fields of a cancel": ("cancel", {"why": 1}, "why"),
}


@pytest.mark.parametrize(("what", "body", "field"), BAD_REPORTS.values(), ids=BAD_REPORTS)
def test_an_error_for_an_invalid_lease_report_names_the_field(
    api: Gateway, what: str, body: object, field: str
) -> None:
    """An error for an invalid report names the field, and the lease does not change."""
    lease = one_lease(api)
    answer = tell(api, lease, what, body)
    assert (answer.status, list(answer.faults)) == (422, [field])
    assert task_of(api, lease["task"]["id"])["state"] == "running"


def test_no_task_can_be_leased_if_the_settings_name_no_pulled_types(
    compose: Callable[[], None], environ: dict[str, str]
) -> None:
    """If the settings name no pulled types, no task can be leased."""
    del environ[Variable.PULLED_QUEUES], environ[Variable.PULLERS]
    compose()
    answer = Gateway().send("POST", LEASES, {"types": [TYPE]})
    assert (answer.status, answer.problem["code"]) == (403, "type_not_pulled")


def test_a_task_that_does_not_fit_into_a_lease_response_is_released(api: Gateway) -> None:
    """A task whose payload does not fit into a lease response is released at once, and uses no attempt."""
    for letter in "ab":
        api.create({"type": TYPE, "payload": letter * 700_000})
    (first,) = leased(api, max_tasks=10)
    (second,) = leased(api, max_tasks=10)
    assert {first["task"]["payload"][0], second["task"]["payload"][0]} == {"a", "b"}
    assert (first["task"]["attempt"], second["task"]["attempt"]) == (1, 1)
