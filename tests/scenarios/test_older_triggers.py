"""While code with new kinds of timers is deployed, older triggers read minutes with such timers.

In these tests, the current code plays the older code, which does not know one kind of timer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from botocore.exceptions import ConnectTimeoutError

from duetime.adapters.dynamodb import schema
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND
from tests.scenarios.schedules import NAME, Schedules
from tests.simulation.endpoints import NOTICE_URL

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.domain.times import Millis
    from duetime_testing.fakes.attribute_values import Item
    from duetime_testing.simulation.faults import Call

UNKNOWN_MARK = "#zz9#"
BESIDE: Millis = 10 * MINUTE
"""The time that older code runs, which ends after the first recovery scan of a minute."""
LATEST: Millis = HOUR + 10 * MINUTE
"""The time by which the second recovery scan has found the timers that the older code could not read."""


class Deploying(Schedules):
    """An account whose trigger does not know one kind of timer."""

    def __init__(self, mark: str) -> None:
        super().__init__()
        self.mark = mark
        self.hidden: list[tuple[tuple[str, str], Item]] = []
        self.after_call = lambda call: self.hide() if call.operation == "put_item" else None

    def hide(self) -> None:
        """Store every timer of that kind in a form that the older code does not know."""
        for item in self.items("20"):
            partition, sort = item[schema.PARTITION_KEY]["S"], item[schema.SORT_KEY]["S"]
            if self.mark in sort:
                unknown = sort.replace(self.mark, UNKNOWN_MARK)
                stranger = {name: value for name, value in item.items() if name != schema.TIMER_SCHEDULE}
                self.table.write(self.now, (partition, sort), None)
                self.table.write(self.now, (partition, unknown), {**stranger, schema.SORT_KEY: {"S": unknown}})
                self.hidden.append(((partition, unknown), item))

    def complete(self) -> None:
        """End the deployment: all code now knows these timers."""
        self.after_call = None
        for (partition, unknown), item in self.hidden:
            self.table.write(self.now, (partition, unknown), None)
            self.table.write(self.now, (partition, item[schema.SORT_KEY]["S"]), item)


def _begin_moved_task(scenario: Deploying) -> Callable[[], bool]:
    moved = scenario.create(HOUR)
    assert scenario.change(moved, delay_seconds=300).status == 200
    return lambda: scenario.state(moved) == "succeeded"


def _begin_schedule(scenario: Deploying) -> Callable[[], bool]:
    scenario.make(cron="*/5 * * * *", catch_up_seconds=2 * HOUR // SECOND)
    first = len(scenario.ran())
    return lambda: len(scenario.ran()) > first + 2


def _begin_late_task(scenario: Deploying) -> Callable[[], bool]:
    scenario.ask("PUT", "/v1/switches/type/simulation-undone", {"stopped": True})
    scenario.create(kind="simulation-undone", notify_on={"late_seconds": 60, "to": NOTICE_URL})
    return lambda: [kind for _, kind in scenario.notices] == ["task.late"]


def _begin_bulk_operation(scenario: Deploying) -> Callable[[], bool]:
    ids = [scenario.create(3 * HOUR) for _ in range(6)]

    def lose(_call: Call) -> None:
        raise ConnectTimeoutError(endpoint_url="lambda")

    # The invocation that starts the operation is lost, so that only the operation's timer is left.
    scenario.once(lambda call: call.operation == "invoke" and call.machine.function == "api", lose)
    body = {"filter": {"type": PLAIN}, "per_second": 1}
    assert scenario.ask("POST", "/v1/tasks/cancel", body).status == 202
    return lambda: {scenario.state(each) for each in ids} == {"cancelled"}


BEGIN = {
    schema.TIMER_MARK: _begin_moved_task,
    schema.SCHEDULE_MARK: _begin_schedule,
    schema.LATE_MARK: _begin_late_task,
    schema.BULK_MARK: _begin_bulk_operation,
}


@pytest.mark.parametrize(
    "mark", [mark if mark == schema.TIMER_MARK else pytest.param(mark, marks=pytest.mark.slow) for mark in BEGIN]
)
def test_a_timer_unreadable_for_an_older_trigger_is_found_by_a_scan(mark: str) -> None:
    """A timer that older code cannot read is counted as `unreadable`, and a scan by the newer code finds it."""
    with Deploying(mark) as scenario:
        scenario.faulty = True
        is_done = BEGIN[mark](scenario)
        other = scenario.create(BESIDE // 2, kind="simulation-phased")
        scenario.run(BESIDE)
        assert not is_done()
        assert scenario.counts()["unreadable"] > 0
        assert (scenario.record(other).lateness or 0) < SECOND
        scenario.complete()
        assert scenario.run_until(is_done, LATEST, step=SECOND)
        assert NAME not in scenario.schedules.names or scenario.schedule()["state"] == "active"
