"""The exact costs of recurring work, beyond those of its tasks."""

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
    """Make an ordinary schedule of the type `report`."""
    spec = ScheduleSpec(written, TaskSpec("report", PAYLOAD), "nightly", **fields)
    return composed(ScheduleServices).creator.create(OWNER, spec).value


def ticked(stack: Stack, minutes: int) -> None:
    """Let this many minutes pass, with a tick in each."""
    for _ in range(minutes):
        stack.clock.at += MINUTE
        stack.call("trigger", {})


def test_a_schedule_costs_its_item_its_place_and_its_timer(metered: tuple[Stack, Meter]) -> None:
    """Far ahead: the item, its place in the list, a timer; then its first expansion, which finds nothing: two more."""
    _stack, meter = metered
    schedule(Written(cron="0 0 1 1 *"))
    assert (meter.table_units, meter.index_units) == (2 + 2, 1)


def test_a_deadline_of_an_expectation_costs_two_units(metered: tuple[Stack, Meter]) -> None:
    """One in twenty minutes: a timer and the schedule; the creation costs no more than any other's."""
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
    """A timer and the schedule; sixty occurrences a minute are sixty tasks, each with its place in the list."""
    stack, meter = metered
    stack.call("trigger", {})
    schedule(Written(rate="1 second"), overlap=Overlap.ALLOW_ALL)
    ticked(stack, 1)
    meter.reset()
    # Before any scan, which would send again because no worker takes messages here.
    ticked(stack, 1)
    cursors = 2
    assert (meter.table_units, meter.index_units) == (cursors + 2 + 60, 60)
    # The early scan sends tasks again that nobody has taken, 10 to 75 seconds after their time.
    early = 7
    assert meter.requests["SendMessageBatch"] == 6 + early


@pytest.mark.slow
def test_an_occurrence_an_hour_costs_two_units_more_than_its_task(metered: tuple[Stack, Meter]) -> None:
    """Sixty ticks of an hourly schedule: one expansion, one task."""
    stack, meter = metered
    stack.call("trigger", {})
    schedule(Written(rate="1 hour"), start_at=stack.clock.now() + 10 * MINUTE, overlap=Overlap.ALLOW_ALL)
    ticked(stack, 5)
    meter.reset()
    ticked(stack, HOUR // MINUTE)
    cursors = 2 * HOUR // MINUTE
    # No worker runs here: for tasks that have not started, the scans set five timers for in fifteen minutes.
    rescans = 5
    assert (meter.table_units, meter.index_units) == (cursors + 2 + 1 + rescans, 1)


@pytest.mark.parametrize(
    ("fields", "extra"),
    [
        ({"overlap": Overlap.ALLOW_ALL}, 0),
        ({"overlap": Overlap.SKIP}, 1),
        ({"overlap": Overlap.BUFFER_ONE}, 1 + 1 + 1),
        ({"overlap": Overlap.BUFFER_ALL}, 1 + 1 + 1),
        ({"overlap": Overlap.CANCEL_OTHER}, 1 + 1 + 1),
        ({"overlap": Overlap.REPLACE_OTHER}, 1),
        ({"overlap": Overlap.ALLOW_ALL, "pause_on_failure": True}, 1),
    ],
    ids=["allow_all", "skip", "buffer_one", "buffer_all", "cancel_other", "replace_other", "pause_on_failure"],
)
def test_what_an_occurrence_costs_to_run(metered: tuple[Stack, Meter], fields: dict[str, Any], extra: int) -> None:
    """Lease and outcome, and one read of its schedule; without overlap, also a note of the next one.

    With a subscription to ends, `finished_at` is a separate write; a waiting one also pays the note of the end.
    """
    stack, meter = metered
    schedule(Written(rate="1 hour"), **fields)
    meter.reset()
    assert stack.work(Priority.NORMAL) == []
    assert (meter.table_units, meter.index_units) == (2 + extra, 0)
    assert meter.requests["Query"] >= 1
