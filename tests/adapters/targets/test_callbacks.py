from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from duetime.adapters.aws_clients import Clients
from duetime.adapters.targets.aws_target import AwsRunner
from duetime.adapters.targets.callbacks import EventEncoding, HttpCallbacks
from duetime.adapters.targets.http_messages import Call, HttpResponse, NoResponse, Reply
from duetime.adapters.targets.http_target import HttpRunner
from duetime.adapters.targets.job_calls import Resources
from duetime.contract.tasks.encoding import entry
from duetime.domain.tasks.attempt_records import AttemptOutcome, AttemptRecord
from duetime.domain.tasks.attempt_results import Succeeded, failure
from duetime.domain.tasks.notices import ConsolePages, Notice, NoticeKind, outcome_origin
from duetime.domain.tasks.states import State
from duetime.domain.tasks.targets import ArnPatterns, CallbackTarget
from duetime.domain.times import SECOND, to_iso
from tests.adapters.targets.works import work
from tests.domain.factories import NOW, task
from tests.fakes.session import FakeSession

if TYPE_CHECKING:
    from duetime.domain.tasks.task import Task

BUS = "arn:aws:events:us-east-1:123456789012:event-bus/alerts"
URL = "https://example.org/ended"
LINE = AttemptRecord(1, 3, "worker", NOW, 0, 250, AttemptOutcome.SUCCEEDED)
DONE = task(state=State.SUCCEEDED, fence=3, attempt=1, attempt_history=(LINE,))


class Kept:
    """A caller with scripted replies that records the calls."""

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        self.calls: list[Call] = []

    def call(self, call: Call) -> Reply:
        """Record a call."""
        self.calls.append(call)
        return self.reply


def no_aws() -> AwsRunner:
    """Fail the test, because these tests call no AWS resource."""
    raise AssertionError


def told(outcome: Task) -> bytes:
    """Return the event that reports an outcome."""
    return HttpCallbacks(Kept(HttpResponse(204)), EventEncoding(entry, ConsolePages()), no_aws).outcome_event(outcome)


def test_an_outcome_is_an_event_of_standard_webhooks() -> None:
    """The event has a type, the time at which the attempt ended, the data, and the signed owner and audience."""
    event = json.loads(told(DONE))
    assert list(event) == ["type", "timestamp", "owner", "audience", "data"]
    assert (event["owner"], event["audience"]) == (DONE.owner, (DONE.callback_url or "").partition("?")[0])
    assert (event["type"], event["timestamp"]) == ("task.succeeded", to_iso(NOW + 250))
    assert event["data"] == json.loads(json.dumps(entry(DONE)))


def test_a_repeated_follow_up_has_the_same_callback_id() -> None:
    """A repeated follow-up has a new fence but the same callback id, which depends on the attempt that ended."""
    again = replace(DONE, fence=4, version=9)
    assert outcome_origin(again) == outcome_origin(DONE)
    assert json.loads(told(again))["timestamp"] == json.loads(told(DONE))["timestamp"]


def test_a_rollback_after_a_success_has_a_separate_callback() -> None:
    """A rollback after a success is reported with a separate callback, so a receiver gets two callbacks."""
    line = replace(LINE, fence=5, outcome=AttemptOutcome.ROLLED_BACK)
    undone = replace(DONE, state=State.ROLLED_BACK, fence=5, attempt_history=(LINE, line))
    assert outcome_origin(undone).id != outcome_origin(DONE).id


def test_a_failed_callback_says_whether_a_retry_may_help() -> None:
    """A missing response, or a status other than 2xx, is a failure that says whether a retry may help."""
    target = CallbackTarget(URL)
    for reply, expected in (
        (HttpResponse(204), Succeeded(b"null")),
        (NoResponse("Timeout", "slow"), failure("Timeout", "slow")),
        (NoResponse("DestinationRefused", "no", retriable=False), failure("DestinationRefused", "no", retriable=False)),
        (HttpResponse(503, "7"), failure("Http503", "the callback returned the status 503", wait_at_least=7 * SECOND)),
        (HttpResponse(410), failure("Http410", "the callback returned the status 410", retriable=False)),
    ):
        caller = Kept(reply)
        assert HttpRunner(caller).call_back(target, work(b'{"type":"task.failed"}')) == expected
        (call,) = caller.calls
        assert (call.method, call.url, call.body, call.most) == ("POST", URL, b'{"type":"task.failed"}', 0)
        assert call.signed


def test_a_notice_to_a_bus_is_an_event() -> None:
    """The event's detail type is the notice's kind, and the source is the same as in all duetime events."""
    session: Any = FakeSession(lambda: NOW)
    runner = AwsRunner(Resources(Clients(session)), ArnPatterns((BUS,)))
    notice = Notice(NoticeKind.LATE, f"{DONE.id}-{NOW}-late", NOW)
    assert (
        HttpCallbacks(Kept(HttpResponse(204)), EventEncoding(entry, ConsolePages()), lambda: runner).notify(
            DONE, BUS, notice
        )
        is None
    )
    (put,) = session.events.taken
    assert (put["EventBusName"], put["Source"], put["DetailType"]) == (BUS, "duetime", "task.late")
    detail = json.loads(put["Detail"])
    assert (detail["id"], detail["type"], detail["timestamp"]) == (notice.id, "task.late", to_iso(NOW))
    assert detail["data"]["id"] == DONE.id.text


def test_a_notice_to_a_disallowed_destination_is_not_sent() -> None:
    """A notice to a destination that the settings no longer allow is not sent and not retried."""
    session: Any = FakeSession(lambda: NOW)
    runner = AwsRunner(Resources(Clients(session)), ArnPatterns())
    notice = Notice(NoticeKind.FAILED, "1", NOW)
    failed = HttpCallbacks(Kept(HttpResponse(204)), EventEncoding(entry, ConsolePages()), lambda: runner).notify(
        DONE, BUS, notice
    )
    assert failed is not None
    assert (failed.error.type, failed.retriable) == ("TargetNotAllowed", False)
    assert session.events.taken == []


def test_an_event_links_to_the_page_of_its_task() -> None:
    """Callbacks and notices contain the address of the task's page only if there is a console."""
    kept = Kept(HttpResponse(204))
    notice = Notice(NoticeKind.FAILED, "some-id", DONE.next_at)
    callbacks = HttpCallbacks(
        kept, EventEncoding(entry, ConsolePages("https://example.org/console/index.html")), no_aws
    )
    callbacks.notify(DONE, URL, notice)
    HttpCallbacks(kept, EventEncoding(entry, ConsolePages()), no_aws).notify(DONE, URL, notice)
    bodies = [callbacks.outcome_event(DONE), *(call.body for call in kept.calls)]
    page = f"https://example.org/console/index.html#/tasks/{DONE.id}"
    assert [json.loads(body).get("console_url") for body in bodies] == [page, page, None]
