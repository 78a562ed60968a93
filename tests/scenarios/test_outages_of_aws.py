"""In outages of AWS services, no accepted task is lost, delays are bounded, and alarms go off.

The figures are those in `docs/reliability.md`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from duetime.domain.times import DAY
from duetime_testing.simulation.table_stream import SimulatedTableStream
from infra import ROOT
from tests.scenarios.aws_outages import Figures, Outage
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime_testing.simulation.faults import Call

HUGE = ["%08x" % (number * 2654435761 % 2**32) for number in range(40_000)]
"""A payload that is stored in S3."""
PAGE = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")


def table_throttled(outage: Outage) -> Figures:
    """The table refuses every other call for an hour."""
    calls = iter(range(10**9))

    def is_refused(call: Call) -> bool:
        return call.service == "dynamodb" and next(calls) % 2 == 0

    return outage.fail_for(HOUR, lambda: outage.refuse_calls(is_refused), outage.heal)


def table_away(outage: Outage) -> Figures:
    """The table refuses every call for an hour."""
    return outage.fail_for(HOUR, lambda: outage.refuse_calls(lambda call: call.service == "dynamodb"), outage.heal)


def queues_away(outage: Outage) -> Figures:
    """SQS refuses every call for an hour, and delivers nothing."""

    def begin() -> None:
        outage.receiving = False
        outage.refuse_calls(lambda call: call.service == "sqs")

    def end() -> None:
        outage.heal()
        outage.receive_again()

    return outage.fail_for(HOUR, begin, end)


def storage_away(outage: Outage) -> Figures:
    """S3 refuses every call for an hour, and some tasks have a payload that is stored in S3."""
    outage.fields = lambda number: {"payload": HUGE} if number % 16 in {0, 5, 7} else {}
    return outage.fail_for(HOUR, lambda: outage.refuse_calls(lambda call: call.service == "s3"), outage.heal)


def nine_workers(outage: Outage) -> Figures:
    """For an hour, the account's concurrency is limited to ten: the trigger and three workers per queue."""
    outage.lasting = 90 * SECOND
    outage.fields = lambda _number: {"timeout_seconds": 300}
    usual = outage.most_workers

    def limit(most: int) -> None:
        outage.most_workers = most
        outage.receive_again()

    return outage.fail_for(HOUR, lambda: limit(3), lambda: limit(usual))


def step_functions_away(outage: Outage) -> Figures:
    """Step Functions refuses every call for an hour, and some tasks are topologies."""
    graph: dict[str, Any] = {"target": {"kind": "topology"}, "payload": {"nodes": {"a": {"type": PLAIN}}}}
    outage.fields = lambda number: graph if number % 4 == 0 else {}
    return outage.fail_for(HOUR, lambda: outage.refuse_calls(lambda call: call.service == "states"), outage.heal)


def no_ticks(outage: Outage) -> Figures:
    """EventBridge Scheduler does not invoke the trigger for a day."""
    outage.every = 10 * MINUTE

    def tick(*, goes_on: bool) -> None:
        outage.ticking = goes_on

    return outage.fail_for(DAY, lambda: tick(goes_on=False), lambda: tick(goes_on=True))


def workers_die(outage: Outage) -> Figures:
    """For an hour, the worker runs out of memory in the middle of every third invocation."""
    seen: dict[object, int] = {}

    def die(call: Call) -> None:
        if call.machine.function != "worker" or call.operation != "update_item":
            return
        number = seen.setdefault(call.machine.strand, len(seen))
        if number % 3 == 0 and outage.now - began[0] < HOUR:
            call.machine.die()

    began: list[int] = []

    def begin() -> None:
        began.append(outage.now)
        outage.before_call = die

    return outage.fail_for(HOUR, begin, outage.heal)


def poison_in_stream(outage: Outage) -> Figures:
    """The table's stream gets a batch of unreadable records every minute for an hour."""
    stream = SimulatedTableStream(outage)
    until: list[int] = []

    def poison() -> None:
        while outage.now < until[0]:
            for shard in stream.shards:
                shard.records += [{"eventName": "MODIFY", "dynamodb": {"Keys": {}, "NewImage": {"z": {"N": "1"}}}}] * 5
            outage.take(MINUTE)

    def begin() -> None:
        until.append(outage.now + HOUR)
        outage.time.start_process(poison)

    found = outage.fail_for(HOUR, begin, outage.heal)
    assert stream.is_read
    assert outage.counts()["stream_records_unreadable"] >= 100
    return found


OUTAGES: list[Callable[[Outage], Figures]] = [
    table_throttled,
    table_away,
    queues_away,
    storage_away,
    nine_workers,
    step_functions_away,
    no_ticks,
    workers_die,
    poison_in_stream,
]


# Columns of the page: outage, requests, on time, last start, alarms.
ROWS = {
    match[1]: [each.strip() for each in match[2].split("|")]
    for match in re.finditer(r"^\| `(\w+)`: [^|]*\|(.*)\|$", PAGE, re.MULTILINE)
}
_LEEWAY_MS = 60_000
"""By how many milliseconds a figure can vary with the order of calls."""


def test_the_page_about_outages_lists_exactly_the_tested_outages() -> None:
    """The page lists exactly the tested outages."""
    assert list(ROWS) == [each.__name__ for each in OUTAGES]


@pytest.mark.slow
@pytest.mark.parametrize("happens", OUTAGES, ids=[each.__name__ for each in OUTAGES])
def test_every_accepted_task_succeeds_after_an_outage(happens: Callable[[Outage], Figures]) -> None:
    """Every accepted task succeeds, and the delays and alarms are those that the page states."""
    with Outage() as outage:
        found = happens(outage)
    assert not found.lost
    _, on_time, last_start, named = ROWS[happens.__name__]
    if (seconds := re.match(r"(\d+) s", last_start)) is not None:
        assert found.latest_after <= int(seconds[1]) * SECOND + _LEEWAY_MS
    expected, due = map(int, re.findall(r"\d+", on_time)[:2])
    assert abs(found.due_during - due) <= due // 10 + 1
    assert abs(found.on_time_during - expected) <= due // 10 + 1
    assert set(named.split(", ")) - {"none"} <= found.alarms
    # A burn rate alarm stays on for the length of its window, which is up to six hours.
    assert not found.still_on - {"AcceptedBurnRate", "OnTimeBurnRate"}
