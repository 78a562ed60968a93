"""Events create and cancel tasks through intake rules."""

from __future__ import annotations

import json

from duetime.domain.times import to_iso
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND
from tests.scenarios.tasks import Tasks


def test_events_create_and_cancel_tasks() -> None:
    """One event creates a task, and another event cancels that task in a bulk operation."""
    with Tasks() as tasks:
        task = {"type": PLAIN, "delay_seconds": HOUR // SECOND}
        fields = {"tags.order": "detail.order"}
        for name, action in (
            ("OrderPlaced", {"create": {"task": task, "fields": fields}}),
            ("OrderCancelled", {"cancel": {"filter": {"type": PLAIN}, "fields": fields}}),
        ):
            rule = {"pattern": {"source": ["orders"], "detail-type": [name]}, **action}
            assert tasks.ask("PUT", f"/v1/intake-rules/{name}", rule).status == 200
        for number, (name, order) in enumerate(
            (("OrderPlaced", "a"), ("OrderPlaced", "b"), ("OrderCancelled", "a"), ("OrderUnknown", "b"))
        ):
            event = {"id": str(number), "source": "orders", "detail-type": name, "time": to_iso(tasks.now)}
            body = json.dumps({**event, "detail": {"order": order}})
            tasks.sqs.send_message(QueueUrl=tasks.intake, MessageBody=body)
            tasks.run(MINUTE)
        found = tasks.ask("GET", "/v1/tasks").body["tasks"]
        assert {each["tags"]["order"]: each["state"] for each in found} == {"a": "cancelled", "b": "scheduled"}
        (operation,) = tasks.ask("GET", "/v1/bulk-operations").body["operations"]
        assert (operation["kind"], operation["affected"]) == ("cancel", 1)
        tasks.run(2 * HOUR)
        assert len(tasks.effects) == 1
