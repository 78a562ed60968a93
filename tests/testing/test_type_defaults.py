"""Tests the options that a handler gives its tasks, and an owner's defaults for a type, in the testing kit."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import pytest

import duetime.handlers
import duetime_client
from duetime.handlers import REGISTRY, OptionInvalid, PayloadInvalid, handler
from duetime_client import NewTask, NotFound, Task
from duetime_client.typed_tasks import NoTaskType

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duetime.handlers import Context
    from duetime_common.option_fields import RetryPolicy, TypeOptions
    from duetime_testing import Duetime

TYPE = "mail.send"
RETRY: RetryPolicy = {"max_attempts": 2, "initial_seconds": 7.0, "multiplier": 2.0, "max_seconds": 300.0}
OPTIONS: TypeOptions = {
    "priority": "high",
    "retry": RETRY,
    "timeout_seconds": 30,
    "notify_within_seconds": 120,
    "rollback_on_failure": True,
    "lock": {"key": "smtp"},
    "rate": {"key": "smtp", "limit": 10},
    "notify_on": {"to": "https://example.org/alerts", "failed": True},
    "expires_seconds": 600,
    "fair_key": "customer-17",
    "fair_weight": 3,
}
"""All options for which a type can have a default, except `locks` and `unique`."""


@dataclass
class Mail:
    """A payload."""

    to: str


@pytest.fixture(autouse=True)
def registered() -> Iterator[None]:
    """Register a handler with all options, and remove it after the test."""
    before = dict(REGISTRY)

    @handler(TYPE, payload=Mail, **OPTIONS)
    def send(_context: Context, _payload: Mail) -> None:
        """Do nothing."""

    @handler("plain")
    def plain(_context: Context, _payload: object) -> None:
        """Do nothing."""

    yield
    REGISTRY.clear()
    REGISTRY.update(before)


def has_options(task: Any) -> bool:  # noqa: ANN401 - a task as the client or the API has it
    """Return whether a task has all options of the handler, with defaults for parts that were omitted."""
    shown = task if isinstance(task, dict) else dict(task.document)
    return all(
        {**shown[name], **value} == shown[name] if isinstance(value, dict) else shown[name] == value
        for name, value in OPTIONS.items()
    )


def test_a_task_has_the_options_of_its_handler(duetime: Duetime) -> None:
    """The task has each option of its handler, as if the request had set it."""
    created = duetime.client.tasks.create(TYPE, payload={"to": "a"}, delay_seconds=60)
    assert has_options(created)
    assert has_options(duetime.client.tasks.get(created.id))


def test_a_creation_overrides_each_option_as_a_whole(duetime: Duetime) -> None:
    """An option in a request replaces the handler's option as a whole, and the other options stay."""
    task = duetime.client.tasks.create(TYPE, retry={"max_attempts": 9}, lock={"key": "db"}, delay_seconds=60)
    assert task.retry is not None
    assert task.lock is not None
    assert (task.retry["max_attempts"], task.retry["initial_seconds"], task.lock["key"]) == (9, 1, "db")
    assert (task.timeout_seconds, task.priority) == (30, "high")


def test_an_option_with_its_built_in_value_overrides_the_handlers_option(duetime: Duetime) -> None:
    """A request can set the normal priority or time limit, although the handler has other options."""
    task = duetime.client.tasks.create(
        TYPE, priority="normal", timeout_seconds=60, rollback_on_failure=False, retry={}, delay_seconds=60
    )
    assert (task.priority, task.timeout_seconds, task.rollback_on_failure) == ("normal", 60, False)
    assert task.retry is not None
    assert task.retry["max_attempts"] == 5


def test_null_disables_a_default(duetime: Duetime) -> None:
    """Null in a request disables a default, for each option that can be null."""
    nulls: dict[str, Any] = dict.fromkeys(("lock", "rate", "notify_on", "expires_seconds", "fair_key", "retry"))
    task = duetime.client.tasks.create(TYPE, delay_seconds=60, **nulls)
    assert (task.lock, task.rate, task.notify_on, task.expires_seconds) == (None, None, None, None)
    assert task.fair_key is None
    assert task.retry is not None
    assert (task.retry["max_attempts"], task.priority) == (5, "high")


def test_every_way_of_creating_tasks_uses_the_handlers_options(duetime: Duetime) -> None:
    """Batches, schedules, nodes of topologies and runs of definitions create tasks with the handler's options."""
    client = duetime.client
    new: list[NewTask] = [{"type": TYPE, "delay_seconds": 60}, {"type": "plain", "delay_seconds": 60}]
    batch = client.tasks.create_batch(new)
    assert [isinstance(each, Task) and has_options(each) for each in batch] == [True, False]
    client.schedules.create("hourly", rate="1 hour", task={"type": TYPE})
    nodes = {"first": {"type": "plain"}, "second": {"type": TYPE, "depends_on": ["first"]}, "third": {"type": TYPE}}
    topology = client.topologies.create({"nodes": nodes})
    client.topology_definitions.put("nightly", {"nodes": nodes})
    run = client.topology_definitions.run("nightly")
    duetime.advance(hours=1, minutes=1)
    (occurrence, *_) = client.tasks.list(schedule="hourly")
    assert has_options(occurrence)
    for parent in (topology.id, run.id):
        found = {each.name: each for each in client.tasks.list(parent=parent)}
        assert [has_options(found[name]) for name in nodes] == [False, True, True]


def test_a_changed_default_applies_to_the_next_runs_of_a_schedule(duetime: Duetime) -> None:
    """Occurrences get the type's defaults when they are created, and the schedule's own options take precedence."""
    client = duetime.client
    client.types.put(TYPE, timeout_seconds=45)
    client.schedules.create("hourly", rate="1 hour", task={"type": TYPE, "priority": "normal", "lock": None})
    duetime.advance(hours=2)
    client.types.put(TYPE, timeout_seconds=50)
    duetime.advance(hours=2)
    found = [*client.tasks.list(schedule="hourly", order="asc")]
    assert (found[0].timeout_seconds, found[-1].timeout_seconds) == (45, 50)
    assert {(each.priority, each.lock is None, each.expires_seconds) for each in found} == {("normal", True, 600)}


def test_an_update_of_a_schedule_keeps_only_the_given_options(duetime: Duetime) -> None:
    """Null in an update removes an option's default, and the type's defaults apply to options that are never set."""
    client = duetime.client
    client.schedules.create("hourly", rate="1 hour", task={"type": TYPE, "priority": "normal"})
    update: Any = {"rate": None, "timeout_seconds": 20}
    client.schedules.update("hourly", task=update)
    duetime.advance(hours=1, minutes=1)
    (run, *_) = client.tasks.list(schedule="hourly")
    assert (run.priority, run.rate, run.timeout_seconds, run.expires_seconds) == ("normal", None, 20, 600)
    assert run.lock is not None


def test_defaults_of_an_owner_replace_those_of_a_handler(duetime: Duetime) -> None:
    """A request takes precedence over an owner's defaults, and null in the defaults disables a handler's option."""
    client = duetime.client
    found = client.types.put(TYPE, timeout_seconds=45, lock=None, notify_on=None)
    assert (found.defaults["timeout_seconds"], found.sources["timeout_seconds"]) == (45, "owner")
    assert "lock" not in found.defaults
    assert found.sources["rate"] == "handler"
    task = client.tasks.create(TYPE, delay_seconds=60)
    assert (task.timeout_seconds, task.lock, task.expires_seconds) == (45, None, 600)
    assert client.tasks.create(TYPE, timeout_seconds=9, delay_seconds=60).timeout_seconds == 9
    client.types.delete(TYPE)
    duetime.advance(seconds=6)
    assert client.tasks.create(TYPE, delay_seconds=60).timeout_seconds == 30


def test_types_without_a_handler_can_have_defaults(duetime: Duetime) -> None:
    """Pulled types, and types whose tasks call an endpoint, can have defaults."""
    client = duetime.client
    duetime.pull("resize")
    client.types.put("resize", timeout_seconds=20_000, unique={"key": "one", "on_conflict": "keep"})
    client.types.put("call", expires_seconds=60)
    first, second = (client.tasks.create("resize", delay_seconds=60) for _ in range(2))
    assert (first.id, first.timeout_seconds) == (second.id, 20_000)
    called = client.tasks.create("call", target={"kind": "http", "url": "https://example.org"}, delay_seconds=60)
    assert called.expires_seconds == 60


def test_types_are_listed_with_their_handlers(duetime: Duetime) -> None:
    """Types with a handler, pulled types and types with defaults are listed with phases, schema and sources."""
    duetime.pull("resize")
    duetime.client.types.put("call", expires_seconds=60)
    found = {each.type: each for each in duetime.client.types.list()}
    assert {TYPE, "plain", "resize", "call"} <= found.keys()
    mail = duetime.client.types.get(TYPE)
    assert mail == found[TYPE]
    assert mail.payload_schema is not None
    assert mail.payload_schema["required"] == ["to"]
    assert (mail.has_handler, mail.phases, set(mail.sources.values())) == (True, ["run"], {"handler"})
    assert mail.defaults["retry"]["max_attempts"] == 2
    assert (found["plain"].payload_schema, found["plain"].defaults) == (None, {})
    assert found["resize"].is_pulled
    with pytest.raises(NotFound):
        duetime.client.types.get("nothing")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"retry": {"max_attempts": 0}}, "retry.max_attempts"),
        ({"timeout_seconds": "60"}, "timeout_seconds"),
        ({"priority": "urgent"}, "priority"),
        ({"lock": {"max_holders": 1}}, "lock.key"),
        ({"rate": 5}, "rate"),
        ({"tags": {"team": "dba"}}, "tags"),
    ],
)
def test_an_invalid_option_is_an_error_when_the_handler_is_imported(options: dict[str, Any], named: str) -> None:
    """The API's rules for creating a task apply to a handler's options, and the error names the keyword."""
    with pytest.raises(OptionInvalid, match=rf"'wrong'.*'{named}'"):
        handler("wrong", **options)
    assert "wrong" not in REGISTRY


def test_a_handler_class_can_be_passed_to_the_client(duetime: Duetime) -> None:
    """A handler class is used like a function, with its payload class; a class that inherits from it has no type."""

    @handler("transfer", payload=Mail, timeout_seconds=12)
    class Transfer:
        def run(self, _context: Context, payload: Mail) -> str:
            return payload.to

    class Other(Transfer):
        """A class without a registration."""

    task = duetime.client.tasks.of(Transfer).create(Mail("a"))
    assert (task.type, task.timeout_seconds) == ("transfer", 12)
    assert duetime.client.tasks.wait(task.id).result == "a"
    with pytest.raises(PayloadInvalid):
        duetime.client.tasks.of(Transfer).create({"to": 7})
    with pytest.raises(NoTaskType):
        duetime.client.tasks.of(Other)


@pytest.mark.parametrize("name", ["LockSpec", "NotifyOn", "RateSpec", "RetryPolicy", "UniqueKey"])
def test_types_of_options_can_be_imported_without_the_client(name: str) -> None:
    """A constant that several handlers share can be annotated without the client's package."""
    here = getattr(duetime.handlers, name)
    assert here is getattr(duetime_client, name)
    assert name in duetime.handlers.__all__


def test_an_unknown_name_of_the_handlers_module_is_an_error() -> None:
    """An unknown name in `duetime.handlers` raises an `AttributeError` and is not looked up in another module."""
    name = "TypeOptions"
    with pytest.raises(AttributeError, match=name):
        getattr(duetime.handlers, name)
