from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.limits import MAX_BATCH
from duetime.settings import Settings

if TYPE_CHECKING:
    from tests.fakes.session import FakeSession
    from tests.functions.api.gateway import Gateway

PATH = "/v1/tasks/batch"


def test_each_task_has_its_own_result(api: Gateway) -> None:
    """Each task of a batch has its own result at its index: valid tasks are created, invalid tasks get an error."""
    tasks = [
        {"type": "a", "delay_seconds": 60, "payload": {"large": "x" * 3_000}},
        {"type": "b", "color": "red"},
        {"type": "c", "due_at": "2999-01-01T00:00:00Z"},
        {"type": "d"},
    ]
    answer = api.send("POST", PATH, {"tasks": tasks})
    results = answer.body["results"]
    assert (answer.status, [result["status"] for result in results]) == (200, [201, 422, 422, 201])
    assert [list(result) for result in results[1:3]] == [["status", "problem"]] * 2
    assert [result["problem"]["errors"][0]["field"] for result in results[1:3]] == [
        "tasks[1].color",
        "tasks[2].due_at",
    ]
    assert sorted(api.listed()) == sorted(results[at]["task"]["id"] for at in (0, 3))
    assert not {"payload", "result"} & set(results[0]["task"])


def test_a_full_batch_is_created(api: Gateway) -> None:
    """The largest allowed batch is created completely, and each task has its own id."""
    results = api.send("POST", PATH, {"tasks": [{"type": "a", "payload": n} for n in range(MAX_BATCH)]}).body["results"]
    assert len({result["task"]["id"] for result in results}) == MAX_BATCH


def test_a_batch_that_is_too_long_or_empty_creates_nothing(api: Gateway) -> None:
    """A batch that is empty, too long or not a list is completely refused, and the error names `tasks`."""
    for tasks in ([], [{"type": "a"}] * (MAX_BATCH + 1), {"type": "a"}, None):
        answer = api.send("POST", PATH, {"tasks": tasks})
        assert (answer.status, list(answer.faults)) == (422, ["tasks"])
    assert api.listed() == []


def test_a_batch_payload_may_be_as_deeply_nested_as_a_single_payload(api: Gateway) -> None:
    """A payload in a batch may be as deeply nested as a single task's payload; the batch's list does not count."""
    payload: list[object] = []
    for _ in range(62):
        payload = [payload]
    assert api.send("POST", "/v1/tasks", {"type": "a", "payload": payload}).status == 201
    assert api.send("POST", PATH, {"tasks": [{"type": "a", "payload": payload}]}).body["results"][0]["status"] == 201
    assert api.send("POST", "/v1/tasks", {"type": "a", "payload": [payload]}).faults.keys() == {"payload"}


def test_only_the_task_nested_too_deeply_is_rejected_in_a_batch(api: Gateway) -> None:
    """A task whose payload is nested too deeply is refused with its index, and the rest of the batch is accepted."""
    payload: list[object] = []
    for _ in range(63):
        payload = [payload]
    results = api.send("POST", PATH, {"tasks": [{"type": "a"}, {"type": "a", "payload": payload}]}).body["results"]
    assert [result["status"] for result in results] == [201, 422]
    assert results[1]["problem"]["errors"] == [
        {"field": "tasks[1]", "reason": "is nested deeper than 64 levels", "code": "too_deep"}
    ]


def test_tasks_are_accepted_even_if_no_queue_can_be_reached(
    api: Gateway, environ: dict[str, str], session: FakeSession
) -> None:
    """If no queue can be reached, tasks are still accepted, alone and in a batch."""
    for url in Settings(environ).queue_urls.values():
        session.client("sqs").delete_queue(QueueUrl=url)
    results = api.send("POST", PATH, {"tasks": [{"type": "a"}]}).body["results"]
    assert results[0]["status"] == 201
    assert api.send("POST", "/v1/tasks", {"type": "a"}).status == 201
