"""Tests HTTP batches in the testing kit, where one request runs several tasks and each task has a separate outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime_client import Task
from duetime_testing import HttpReply

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime_testing import Duetime, HttpRequest

URL = "https://index.example.org/add"
BATCH: Any = {"kind": "http", "url": URL, "batch": {"max_size": 10, "max_wait_seconds": 1}}


def ended(duetime: Duetime, payloads: Sequence[Any], **options: Any) -> list[Task]:  # noqa: ANN401 - of a creation
    """Create tasks with the given payloads at once, and return them when all have ended."""
    new: list[Any] = [{"type": "index.add", "target": BATCH, "payload": each, **options} for each in payloads]
    results = duetime.client.tasks.create_batch(new)
    duetime.run_until_idle()
    return [duetime.client.tasks.get(task.id) for task in results if isinstance(task, Task)]


def sizes(duetime: Duetime) -> list[int]:
    """Return the number of tasks in each request."""
    return [len(request.json["items"]) for request in duetime.http.requests]


def test_due_tasks_share_a_request_with_an_outcome_each(duetime: Duetime) -> None:
    """One of three tasks in a request succeeds, one fails permanently, and one is retried alone after its wait."""

    def add(request: HttpRequest) -> HttpReply:
        outcomes: list[Any] = []
        for item in request.json["items"]:
            if item["payload"] == "bad":
                outcomes.append({"status": 422, "error": "no text"})
            elif item["payload"] == "busy" and item["attempt"] == 1:
                outcomes.append({"status": 503, "retry_after_seconds": 60})
            else:
                outcomes.append({"status": 200, "result": {"added": item["payload"]}})
        return HttpReply(json={"results": outcomes})

    duetime.http.respond_with(URL, add)
    good, bad, busy = ended(duetime, ["good", "bad", "busy"])
    assert (good.state, good.result) == ("succeeded", {"added": "good"})
    assert bad.state == "failed"
    assert bad.error is not None
    assert (bad.error.type, bad.error.message) == ("Http422", "no text")
    assert (busy.state, busy.attempt, busy.result) == ("succeeded", 2, {"added": "busy"})
    assert sizes(duetime) == [3, 1]
    first, second = (request.at for request in duetime.http.requests)
    assert (second - first).total_seconds() >= 60


def test_a_failed_request_fails_each_task_by_its_policy(duetime: Duetime) -> None:
    """The tasks share requests until their last attempts, which are separate requests."""
    duetime.http.respond(URL, status=500)
    tasks = ended(duetime, range(4), retry={"max_attempts": 3, "initial_seconds": 1, "multiplier": 1})
    assert [(task.state, task.attempt) for task in tasks] == [("failed", 3)] * 4
    assert sorted(sizes(duetime)[-4:]) == [1] * 4
    assert max(sizes(duetime)) > 1


def test_an_accepted_task_of_a_request_reports_its_end_later(duetime: Duetime) -> None:
    """An accepted task ends with a later report, after the request's other tasks have already ended."""

    def add(request: HttpRequest) -> HttpReply:
        return HttpReply(
            json={"results": [{"status": 202 if item["payload"] else 200} for item in request.json["items"]]}
        )

    duetime.http.respond_with(URL, add)
    new: list[Any] = [{"type": "index.add", "target": BATCH, "payload": each} for each in (0, 1)]
    done, accepted = (task for task in duetime.client.tasks.create_batch(new) if isinstance(task, Task))
    duetime.advance(seconds=5)
    assert [duetime.client.tasks.get(task.id).state for task in (done, accepted)] == ["succeeded", "running"]
    (request,) = duetime.http.requests
    fence = next(item["fence"] for item in request.json["items"] if item["task_id"] == accepted.id)
    duetime.client.tasks.notify_success(accepted.id, fence, "later")
    assert duetime.client.tasks.get(accepted.id).result == "later"
