"""Locks in a whole account: nobody runs beside a live holder, and no lock stands idle while somebody waits for it."""

from __future__ import annotations

from duetime.handlers import Accepted
from tests.scenarios.scenario import MINUTE, PLAIN, SECOND, Scenario

LOCK = {"key": "db-17"}


def test_a_lock_that_is_renewed_for_days_is_not_removed() -> None:
    """A deferred task that is kept alive by heartbeats for longer than a lock lives without one keeps its lock."""
    with Scenario() as scenario:
        scenario.target = lambda _phase, _context: Accepted()
        body = {"type": PLAIN, "lock": LOCK, "deadline_seconds": 3600}
        first = scenario.ask("POST", "/v1/tasks", body).body["id"]
        scenario.run(20 * SECOND)
        second = scenario.ask("POST", "/v1/tasks", body).body["id"]
        fence = scenario.record(first).fence
        scenario.ticking = False  # looks at the lock go by the queue
        for _ in range(2 * 30):
            scenario.run(30 * MINUTE)
            scenario.expire()
            assert scenario.ask("POST", f"/v1/tasks/{first}/heartbeat", {"fence": fence}).status == 200
            assert scenario.record(second).started_at is None
