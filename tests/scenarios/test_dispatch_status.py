"""The dispatch status for operators."""

from __future__ import annotations

import json
from datetime import datetime

from duetime.environment_variables import Variable
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND, Scenario

PATH = "/v1/dispatch"


def instant(text: str) -> int:
    """A response's time in milliseconds."""
    return round(datetime.fromisoformat(text).timestamp() * SECOND)


def test_last_tick_at_shows_an_outage_of_the_trigger_and_its_end() -> None:
    """`last_tick_at` is null before the first tick, then at most a minute old, and does not change during an outage."""
    with Scenario() as account:
        account.ticking = False
        assert account.ask("GET", PATH).body["last_tick_at"] is None
        account.ticking = True
        account.run(3 * MINUTE)
        found = account.ask("GET", PATH).body
        assert account.now - instant(found["last_tick_at"]) <= MINUTE + SECOND
        assert instant(found["dispatched_until"]) > account.now
        account.ticking = False
        account.run(HOUR)
        found = account.ask("GET", PATH).body
        assert HOUR <= account.now - instant(found["last_tick_at"]) <= HOUR + 2 * MINUTE
        assert instant(found["dispatched_until"]) < account.now


def test_delayed_messages_are_counted_by_queue() -> None:
    """A task that is due in a minute counts as a delayed message on its priority's queue; every queue is listed."""
    with Scenario() as account:
        urls = {"render": account.environ[Variable.QUEUE_LOW]}
        account.environ[Variable.PULLED_QUEUES] = json.dumps(urls)
        account.ask("POST", "/v1/tasks", {"type": PLAIN, "priority": "high", "delay_seconds": 60})
        queues = account.ask("GET", PATH).body["queues"]
    assert [(each["priority"], each["pulled_type"]) for each in queues] == [
        ("high", None),
        ("normal", None),
        ("low", None),
        (None, "render"),
    ]
    assert [(each["waiting"], each["delayed"], each["in_flight"]) for each in queues] == [(0, 1, 0), *[(0, 0, 0)] * 3]


def test_only_operators_can_read_the_dispatch_status() -> None:
    """Only operators can read the status, because it covers all owners' tasks."""
    with Scenario() as account:
        account.environ |= {Variable.OPERATORS: "boss", Variable.ADMINS: ""}
        refused = account.ask("GET", PATH)
        assert (refused.status, refused.body["code"]) == (403, "operator_required")
        assert account.ask("GET", PATH, headers={"X-Duetime-Owner": "boss"}).status == 200
