"""Tests HTTP batches, in which one request is sent for several tasks and the response ends each task's attempt."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import pytest

from duetime.adapters.targets import http_batches
from duetime.adapters.targets.http_batches import run_in_batch
from duetime.adapters.targets.http_messages import HttpResponse, NoResponse
from duetime.domain.ids import TaskId
from duetime.domain.limits import MAX_RESULT_BYTES
from duetime.domain.tasks.attempt_results import Deferred, Failed, NotSent, Stopped, Succeeded
from duetime.domain.tasks.targets import Auth, AuthScheme, CallBatch, HttpRequest, HttpTarget
from duetime.domain.tasks.task import RequestedAction
from duetime.domain.times import SECOND, to_iso
from tests.adapters.targets.test_batch_handlers import Together
from tests.adapters.targets.works import work
from tests.clocks import NOW

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.adapters.targets.http_messages import Call, Reply
    from duetime.ports.targets import Work

URL = "https://index.example.org/add"
TARGET = HttpTarget(URL, batch=CallBatch(50, 5.0))


@dataclass
class Answering:
    """A caller that returns the same reply to every call, or the same outcome for every item."""

    reply: Reply | None = None
    calls: list[Call] = field(default_factory=list)

    def call(self, call: Call) -> Reply:
        """Return the reply."""
        self.calls.append(call)
        if self.reply is not None:
            return self.reply
        return answer([{"status": 200, "result": item["task_id"]} for item in items_of(call)])


def answer(outcomes: object, status: int = 200) -> HttpResponse:
    """Return a response with the given outcomes."""
    return HttpResponse(status, body=json.dumps({"results": outcomes}).encode())


def items_of(call: Call) -> list[dict[str, Any]]:
    """Return the items in a request."""
    items: list[dict[str, Any]] = json.loads(call.body)["items"]
    return items


def tid(number: int) -> TaskId:
    """Return the id of the numbered task."""
    return TaskId.of(NOW, 7, number)


def due(number: int, payload: bytes = b'{"a":1}') -> Work:
    """Return an attempt of the numbered task."""
    attempt = work(payload, url=URL)
    return replace(attempt, task=replace(attempt.task, id=tid(number), target=TARGET))


def called(caller: Answering, *works: Work, target: HttpTarget = TARGET) -> Together:
    """Return the group of the given attempts after the call."""
    together = Together(len(works))
    for each in works:
        run_in_batch(caller, target, replace(each, batch_groups=lambda: together))
    return together


def ended(reply: Reply, size: int = 2) -> Sequence[object]:
    """Return how a reply ends several attempts."""
    return called(Answering(reply), *(due(number) for number in range(size))).endings


def failed(ending: object) -> Failed:
    """Return the failure of an attempt that must fail."""
    assert isinstance(ending, Failed), ending
    return ending


def test_a_batch_request_has_an_item_for_each_task() -> None:
    """The owner, the endpoint and the earliest deadline are outside the items, and the request has a separate id."""
    caller, works = Answering(), [due(1), due(2, b'{"a":2}')]
    endings = called(caller, *works).endings
    (call,) = caller.calls
    sent = json.loads(call.body)
    assert [(item["task_id"], item["fence"], item["payload"]) for item in sent["items"]] == [
        (tid(1).text, 3, {"a": 1}),
        (tid(2).text, 3, {"a": 2}),
    ]
    deadline = to_iso(works[0].deadline)
    assert {name: sent[name] for name in sent if name != "items"} == {
        "owner": works[0].task.owner,
        "audience": URL,
        "deadline": deadline,
    }
    assert (call.method, call.url, call.signed, call.seconds) == ("PUT", f"{URL}?action=run", True, 5.0)
    assert (call.headers["Duetime-Batch"], call.headers["Duetime-Deadline"]) == ("2", deadline)
    assert call.id == f"{tid(1).text}-3-batch"
    assert endings == [Succeeded(f'"{tid(number).text}"'.encode()) for number in (1, 2)]


def test_one_attempt_of_each_request_counts_as_its_call(monkeypatch: pytest.MonkeyPatch) -> None:
    """In each request, every attempt except the first is marked as sharing the call of another attempt."""
    shared: list[int] = []

    def attempt(number: int) -> Work:
        return replace(due(number), shares_call=lambda: shared.append(number))

    called(Answering(), *(attempt(number) for number in range(4)))
    assert shared == [1, 2, 3]
    monkeypatch.setattr(http_batches, "MAX_REQUEST_BYTES", 1)
    called(Answering(), *(attempt(number) for number in range(4)))
    assert shared == [1, 2, 3]


def test_attempts_share_a_call_only_with_identical_targets() -> None:
    """Attempts share a call only with the same type, owner, URL and headers with placeholders, and timeout."""
    target = replace(
        TARGET,
        url="https://index.example.org/<duetime.due-at>",
        request=HttpRequest(headers=(("X-Name", "<duetime.attempt>"),), auth=Auth("key", AuthScheme.BEARER, "")),
    )
    first = due(1)
    others: list[dict[str, Any]] = [
        {"owner": "other"},
        {"type": "other"},
        {"due_at": NOW + 1},
        {"attempt": 1},
        {"timeout_seconds": 7},
    ]
    works = [first, due(2), *(replace(first, task=replace(first.task, **each)) for each in others)]
    together = called(Answering(), *works, target=target)
    assert together.keys[0] == together.keys[1]
    assert len({*together.keys}) == 1 + len(others)


def test_each_outcome_of_a_batch_ends_its_attempt() -> None:
    """An item's outcome is a success with a result, a failure with a wait, an acceptance, or a final failure."""
    outcomes = [
        {"status": 200, "result": {"length": 4}},
        {"status": 503, "error": "the index is locked", "retry_after_seconds": 29.5},
        {"status": 202},
        {"status": 422},
        {"status": 204},
    ]
    succeeded, locked, accepted, final, empty = ended(answer(outcomes), 5)
    assert succeeded == Succeeded(b'{"length":4}')
    assert (failed(locked).error.type, failed(locked).error.message) == ("Http503", "the index is locked")
    assert (failed(locked).retriable, failed(locked).wait_at_least) == (True, 30 * SECOND)
    assert accepted == Deferred()
    assert (failed(final).error.message, failed(final).retriable) == ("the endpoint answered 422 for this task", False)
    assert empty == Succeeded(b"null")


@pytest.mark.parametrize(
    ("reply", "error", "retriable"),
    [
        (HttpResponse(500, body=b"down"), "Http500", True),
        (HttpResponse(404), "Http404", False),
        (NoResponse("HostUnknown", "index.example.org"), "HostUnknown", True),
        (HttpResponse(200, body=b"done"), "BatchResultInvalid", False),
        (HttpResponse(200, body=b"[]"), "BatchResultInvalid", False),
        (answer([{"status": 200}]), "BatchResultInvalid", False),
        (answer({"0": {"status": 200}}), "BatchResultInvalid", False),
        (HttpResponse(200, body=b"[" * 100_000), "BatchResultInvalid", False),
        (HttpResponse(200, body=b'{"results": [NaN, 1]}'), "BatchResultInvalid", False),
    ],
)
def test_a_response_without_outcomes_fails_every_attempt(reply: Reply, error: str, retriable: bool) -> None:  # noqa: FBT001 - of a case
    """If outcomes are missing, attempts fail by the status, or permanently after a 2xx, as the work may be done."""
    for ending in ended(reply):
        assert (failed(ending).error.type, failed(ending).retriable) == (error, retriable)


@pytest.mark.parametrize(
    "outcome",
    [None, "ok", 200, [], {}, {"status": "200"}, {"status": True}, {"status": 199}, {"status": 600}, {"status": 200.0}],
)
def test_an_invalid_outcome_fails_only_its_attempt(outcome: object) -> None:
    """The error for an invalid outcome names its position."""
    first, second = ended(answer([{"status": 200}, outcome]))
    assert first == Succeeded(b"null")
    assert failed(second).error.type == "BatchResultInvalid"
    assert "results[1]" in failed(second).error.message


@pytest.mark.parametrize("wait", ["30", -1, 86_401, True, None, [30]])
def test_an_invalid_wait_in_a_batch_outcome_is_ignored(wait: object) -> None:
    """A wait that is not a number, is negative or is longer than a day is ignored."""
    (ending,) = ended(answer([{"status": 503, "retry_after_seconds": wait}]), 1)
    assert failed(ending).wait_at_least == 0


def test_a_batch_response_can_defer_all_tasks_or_have_no_results() -> None:
    """A 202 status defers all tasks, and an empty body is a success for all tasks without a result."""
    assert ended(HttpResponse(202)) == [Deferred()] * 2
    assert ended(HttpResponse(204)) == [Succeeded(b"null")] * 2


def test_a_result_that_is_too_large_fails_only_its_attempt() -> None:
    """An attempt whose result is too large is not retried, because its work was done; other attempts succeed."""
    large, fits = ended(answer([{"status": 200, "result": "x" * (MAX_RESULT_BYTES + 1)}, {"status": 200, "result": 1}]))
    assert (failed(large).error.type, failed(large).retriable) == ("AnswerTooLarge", False)
    assert fits == Succeeded(b"1")


def test_a_batch_request_that_would_be_too_large_is_divided(monkeypatch: pytest.MonkeyPatch) -> None:
    """The outcomes of a divided request keep their order; an item that is too large is sent alone."""
    caller, sizes = Answering(), (1, 1, 9, 1)
    works = [due(number, b'"' + b"x" * 1_000 * size + b'"') for number, size in enumerate(sizes)]
    monkeypatch.setattr(http_batches, "MAX_REQUEST_BYTES", 5_000)
    endings = called(caller, *works).endings
    assert [len(items_of(call)) for call in caller.calls] == [2, 1, 1]
    assert len({call.id for call in caller.calls}) == len(caller.calls)
    assert endings == [Succeeded(f'"{each.task.id.text}"'.encode()) for each in works]


def test_a_lost_or_cancelled_attempt_is_not_sent() -> None:
    """An item whose lease is lost or whose task is cancelled is left out of the request."""
    caller = Answering()
    lost = replace(due(1), is_leased=lambda: False)
    cancelled = replace(due(2), requested_action=lambda: RequestedAction.CANCEL)
    endings = called(caller, lost, cancelled, due(3)).endings
    assert [type(ending) for ending in endings] == [NotSent, Stopped, Succeeded]
    assert [item["task_id"] for item in items_of(caller.calls[0])] == [tid(3).text]


def test_a_task_called_alone_is_a_batch_of_one() -> None:
    """A task that is called alone, for example because of its rate, is sent as a batch with one item."""
    caller = Answering()
    assert run_in_batch(caller, TARGET, due(1)) == Succeeded(f'"{tid(1).text}"'.encode())
    assert len(items_of(caller.calls[0])) == 1


def test_batch_limits_are_the_limits_of_the_target() -> None:
    """The limits come from the target, and at most half of the remaining time is spent waiting."""
    together = called(Answering(), due(1), replace(due(2), seconds=3.0))
    assert together.limits == [(50, 5_000), (50, 1_500)]
