"""Tests of the exact costs of schedules, in addition to the costs of their tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime.composition import composed
from duetime.composition.schedules import ScheduleServices
from duetime.domain.schedules.definition import Overlap, ScheduleSpec, Written
from duetime.domain.tasks.task_options import Priority
from duetime.domain.tasks.type_defaults import TaskSpec
from duetime.domain.times import HOUR, MINUTE
from tests.functions.stack import OWNER
from tests.functions.test_meter import PAYLOAD, metered

if TYPE_CHECKING:
    from duetime.domain.schedules.schedule_record import StoredSchedule
    from tests.functions.meter import Meter
    from tests.functions.stack import Stack

pytestmark = pytest.mark.engine
__all__ = ["metered"]


def schedule(written: Written, **fields: Any) -> StoredSchedule:  # noqa: ANN401 - any field
    """Create a schedule for tasks of the type `report`."""
    spec = ScheduleSpec(written, TaskSpec("report", PAYLOAD), "nightly", **fields)
    return composed(ScheduleServices).creator.create(OWNER, spec).value


def ticked(stack: Stack, minutes: int) -> None:
    """Let this many minutes pass, with one tick in each minute."""
    for _ in range(minutes):
        stack.clock.at += MINUTE
        stack.call("trigger", {})


def test_a_schedule_costs_its_item_its_place_and_its_timer(metered: tuple[Stack, Meter]) -> None:
    """A schedule costs an item, a place in the list and a timer.

    The first expansion, which finds no occurrence, costs two more units.
    """
    _stack, meter = metered
    schedule(Written(cron="0 0 1 1 *"))
    assert (meter.table_units, meter.index_units) == (2 + 2, 1)


def test_a_deadline_of_an_expectation_costs_two_units(metered: tuple[Stack, Meter]) -> None:
    """Each deadline of an expectation costs two units, for a timer and the schedule.

    Creating the schedule costs no more with an expectation.
    """
    stack, meter = metered
    stack.call("trigger", {})
    meter.reset()
    schedule(Written(cron="0 0 1 1 *"), expect_every_seconds=900)
    assert (meter.table_units, meter.index_units) == (2 + 2, 1)
    meter.reset()
    ticked(stack, 20)
    cursors = 2 * 20
    assert (meter.table_units, meter.index_units) == (cursors + 2, 0)


@pytest.mark.slow
def test_an_expansion_costs_two_units_however_many_occurrences_it_places(metered: tuple[Stack, Meter]) -> None:
    """An expansion costs a timer and a write of the schedule.

    Each of its sixty occurrences costs a record and a place in the list.
    """
    stack, meter = metered
    stack.call("trigger", {})
    schedule(Written(rate="1 second"), overlap=Overlap.ALLOW_ALL)
    ticked(stack, 1)
    meter.reset()
    # No scan runs in this tick. Scans would send tasks again, because no worker receives messages in this test.
    ticked(stack, 1)
    cursors = 2
    assert (meter.table_units, meter.index_units) == (cursors + 2 + 60, 60)
    # The early scan sends tasks again if they were not received 10 to 75 seconds after their due time.
    early = 7
    assert meter.requests["SendMessageBatch"] == 6 + early


@pytest.mark.slow
def test_an_hourly_occurrence_costs_two_units_more_than_its_task(metered: tuple[Stack, Meter]) -> None:
    """In sixty ticks, a schedule with one occurrence an hour costs one expansion and one task."""
    stack, meter = metered
    stack.call("trigger", {})
    schedule(Written(rate="1 hour"), start_at=stack.clock.now() + 10 * MINUTE, overlap=Overlap.ALLOW_ALL)
    ticked(stack, 5)
    meter.reset()
    ticked(stack, HOUR // MINUTE)
    cursors = 2 * HOUR // MINUTE
    # No worker runs in this test, so the scans set five timers, fifteen minutes ahead, for tasks that have not started.
    rescans = 5
    assert (meter.table_units, meter.index_units) == (cursors + 2 + 1 + rescans, 1)


@pytest.mark.parametrize(
    ("fields", "extra", "reads"),
    [
        ({"overlap": Overlap.ALLOW_ALL}, 0, 1),
        ({"overlap": Overlap.SKIP}, 1, 1),
        ({"overlap": Overlap.BUFFER_ONE}, 1 + 1 + 1, 2),
        ({"overlap": Overlap.BUFFER_ALL}, 1 + 1 + 1, 2),
        ({"overlap": Overlap.CANCEL_OTHER}, 1 + 1 + 1, 2),
        ({"overlap": Overlap.REPLACE_OTHER}, 1, 1),
        ({"overlap": Overlap.ALLOW_ALL, "pause_on_failure": True}, 1, 2),
    ],
    ids=["allow_all", "skip", "buffer_one", "buffer_all", "cancel_other", "replace_other", "pause_on_failure"],
)
def test_an_occurrence_costs_its_lease_its_outcome_and_a_schedule_read(
    metered: tuple[Stack, Meter], fields: dict[str, Any], extra: int, reads: int
) -> None:
    """An occurrence costs its lease, its outcome and a read of its schedule.

    If occurrences must not overlap, the start is recorded in the schedule. If the schedule follows the ends of its
    occurrences, `finished_at` is a separate write, and the schedule is read twice. If occurrences may wait for other
    occurrences, the end is also recorded in the schedule.
    """
    stack, meter = metered
    schedule(Written(rate="1 hour"), **fields)
    meter.reset()
    assert stack.work(Priority.NORMAL) == []
    assert (meter.table_units, meter.index_units) == (2 + extra, 0)
    # One more query reads the switches.
    assert meter.requests["Query"] == 1 + reads
