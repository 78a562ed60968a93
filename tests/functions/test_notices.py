"""Tests of `notify_on` notices, from the worker to the receiver."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime import composition
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task_options import NotifyOn, Priority
from duetime.domain.tasks.type_defaults import TaskSpec
from duetime.environment_variables import Variable
from tests.adapters.clouds import Cloud
from tests.adapters.targets.receiver import is_signed_by, secret_for
from tests.clocks import StandingClock
from tests.fakes.session import FakeSession
from tests.functions.receivers import Receiver, receiving
from tests.functions.stack import OWNER, Stack

if TYPE_CHECKING:
    from collections.abc import Iterator

SECRET = "c2VjcmV0" * 8
BUS = "arn:aws:events:us-east-1:123456789012:event-bus/alerts"


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    """A running HTTP endpoint on the loopback address."""
    with receiving() as started:
        yield started


@pytest.fixture
def session() -> FakeSession:
    """A session of AWS fakes, with a signing secret."""
    made = FakeSession(StandingClock().now)
    made.secrets.values["signing"] = SECRET
    return made


@pytest.fixture
def stack(session: Any) -> Iterator[Stack]:  # noqa: ANN401 - it stands in for a session of boto3
    """The Lambda functions over AWS fakes, with settings that allow tasks to call an event bus."""
    settings: dict[str, str] = {
        Variable.HTTP_ALLOW: "127.0.0.1",
        Variable.SIGNING_SECRET: "signing",
        Variable.AWS_TARGETS: BUS,
    }
    cloud = Cloud(session.client("dynamodb"), session.client("s3"), session.client("sqs"))
    yield Stack(cloud, session, settings, StandingClock())
    composition.use(None)


def test_a_failure_notice_is_a_signed_request_with_the_task(stack: Stack, receiver: Receiver) -> None:
    """A notice is a signed Standard Webhooks request with the task in the form that lists show.

    The task is finished afterwards.
    """
    notify_on = NotifyOn(f"{receiver.url}/alerts", failed=True)
    task = stack.create(TaskSpec("unheard.of", name="Nightly", notify_on=notify_on))
    assert stack.work(Priority.NORMAL) == []
    (told,) = receiver.requests
    assert (told.method, told.path) == ("POST", "/alerts")
    assert told.headers["webhook-id"] == told.json["id"] == f"{task.id}-1-failed"
    assert is_signed_by(secret_for(OWNER, SECRET), told.headers, told.body)
    assert told.json["type"] == "task.failed"
    assert (told.json["data"]["name"], told.json["data"]["state"]) == ("Nightly", "failed")
    done = stack.get(task)
    assert (done.state, done.finished_at is not None) == (State.FAILED, True)


def test_a_notice_to_an_address_that_is_no_longer_allowed_fails(
    stack: Stack, session: FakeSession, capsys: pytest.CaptureFixture[str]
) -> None:
    """A notice to an address that is no longer allowed is counted and logged without the address.

    The task keeps its outcome.
    """
    task = stack.create(TaskSpec("unheard.of", notify_on=NotifyOn(BUS, failed=True)))
    stack.environ[Variable.AWS_TARGETS] = ""
    assert stack.work(Priority.NORMAL) == []
    assert session.events.taken == []
    assert stack.get(task).finished_at is not None
    out = capsys.readouterr().out
    assert '"notices_failed":[1.0]' in out.replace(" ", "")
    assert "event-bus/alerts" not in out
