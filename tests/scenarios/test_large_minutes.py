"""Minutes that take longer to read or send than the trigger's hold do not delay other minutes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from duetime.domain.ids import partition_of
from duetime.domain.operating_parameters import GROUP_HOLD, TICK_BUDGET
from duetime.domain.times import minute_of
from tests.scenarios.scenario import HOUR, MINUTE, SECOND
from tests.scenarios.tasks import Tasks

if TYPE_CHECKING:
    from duetime.domain.times import Millis
    from duetime_testing.simulation.faults import Call


@pytest.mark.parametrize("takes", [130 * SECOND, 4 * MINUTE])
def test_a_slow_reader_of_a_minute_delays_no_other_minute(takes: Millis) -> None:
    """If a reader is slow, the next tick takes over the reader's minute, and other minutes are read meanwhile."""
    with Tasks() as tasks:
        tasks.faulty = True
        tasks.run(MINUTE)
        slow = tasks.create(7 * MINUTE)
        after = [tasks.create(delay * MINUTE) for delay in (8, 9, 14, 29)]
        partition = partition_of(minute_of(tasks.record(slow).due_at), 0)

        def wait(call: Call) -> None:
            values = str(call.request.get("ExpressionAttributeValues"))
            if call.machine.function == "trigger" and call.operation == "query" and partition in values:
                tasks.take(takes)

        tasks.before_call = wait
        tasks.run(HOUR)
        assert tasks.counts()["shard_groups_taken_over"]
        assert all((tasks.done(task_id).lateness or 0) < SECOND for task_id in after)
        assert (tasks.done(slow).lateness or 0) < takes


@pytest.mark.slow
def test_tasks_run_once_even_if_two_readers_send_them() -> None:
    """If every send is slower than the hold, each task of a minute runs once, whether one or two readers send it.

    The early scan sends the tasks once more, because they are late.
    """
    with Tasks() as tasks:
        tasks.faulty = True
        made = [tasks.create(10 * MINUTE) for _ in range(300)]
        later = tasks.create(20 * MINUTE)

        def wait(call: Call) -> None:
            if call.machine.function == "trigger" and call.operation == "send_message_batch":
                tasks.take(GROUP_HOLD + TICK_BUDGET)

        tasks.before_call = wait
        tasks.run(HOUR)
        assert tasks.tally() == {"succeeded": len(made) + 1}
        assert (tasks.done(later).lateness or 0) < GROUP_HOLD + TICK_BUDGET
        assert tasks.sent() <= 3 * (len(made) + 1)
