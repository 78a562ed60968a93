"""Replays each alarm, which must be on while its metrics are bad, and off on a quiet day and on a busy day."""

from __future__ import annotations

import re
import shlex
from dataclasses import fields, replace
from typing import TYPE_CHECKING, Any

import pytest

from duetime.contract.openapi.document import document
from duetime.metrics import METRICS
from duetime_cdk.alarm_list import AlarmSpec, BurnRate, alarms
from duetime_cdk.canary import Canary
from duetime_cdk.environments import PROD
from duetime_cdk.metric_expressions import Expression
from infra import ROOT
from tests.client.commands import COMMANDS
from tests.metrics.alarm_evaluation import FURTHER, is_alarming, key_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from duetime_cdk.metric_sources import Source

ENVIRONMENT = replace(PROD, intake_owner="events", archive_days=30, canary=Canary())
EVERY = alarms(ENVIRONMENT)
_LISTED: list[AlarmSpec | BurnRate] = [*EVERY.single, *EVERY.burn_rates]
ALARMS: Mapping[str, AlarmSpec | BurnRate] = {each.name: each for each in _LISTED}
BEFORE, BAD, AFTER = 400, 400, 400
"""How many minutes are healthy at first, then bad, and then healthy again."""
Values = "Callable[[int], Sequence[float]]"
_NONE: Sequence[float] = ()

# Values per minute, by metric: on a quiet day, on a busy day, and with the cause of the alarm.
QUIET: Mapping[str, Callable[[int], Sequence[float]]] = {
    "Invocations": lambda _: [1],
    "Errors": lambda _: [0],
    "Throttles": lambda _: [0],
    "tick_age": lambda _: [60_000],
    "ApproximateNumberOfMessagesVisible": lambda _: [0],
    "IteratorAge": lambda _: _NONE,
}
"""The metrics on a quiet day; a metric that is not listed has no values."""
BUSY: Mapping[str, Callable[[int], Sequence[float]]] = {
    "Invocations": lambda _: [1, 1],
    # One invocation per hour fails, and sometimes a tick waits for the previous tick.
    "Errors": lambda minute: [1 if minute % 60 == 0 else 0],
    "Throttles": lambda minute: [1 if minute % 60 == 0 else 0],
    "ThrottledRequests": lambda minute: [30] if minute % 60 == 0 else _NONE,
    "tick_age": lambda minute: [180_000 if minute % 60 == 0 else 60_000],
    "clock_skew": lambda minute: [3_100] if minute % 60 == 0 else _NONE,
    # An hourly burst is processed in five minutes.
    "recovery_scans_waiting": lambda minute: [1] if 2 <= minute % 60 < 5 else _NONE,
    "lateness": lambda minute: [*([200.0] * 10), *([12_000.0] if minute % 60 == 0 else [])],
    "tasks_failed": lambda _: [1],
    # One in a hundred attempts fails, and sometimes there is only one attempt, which fails.
    "version_attempts": lambda minute: [1 if minute % 60 == 0 else 100],
    "version_failures": lambda _: [1],
    "attempts_lost": lambda minute: [3 if minute % 5 == 0 else 0],
    "oldest_due": lambda minute: [950_000 if minute % 60 == 0 else 30_000],
    "IteratorAge": lambda minute: [70_000 if minute % 60 == 0 else 6_000],
    "Count": lambda _: [3_000],
    "5xx": lambda minute: [3 if minute % 10 == 0 else 0],
}
CAUSES: Mapping[str, Mapping[str, Callable[[int], Sequence[float]]]] = {
    "TriggerFailing": {"Errors": lambda _: [1]},
    "TicksIncomplete": {"tick_age": lambda _: _NONE},
    "ClockSkewed": {"clock_skew": lambda _: [4_000]},
    "TasksLate": {"lateness": lambda _: [*([100.0] * 90), *([30_000.0] * 10)]},
    "TasksFailing": {"tasks_failed": lambda _: [5]},
    "OldestDue": {"oldest_due": lambda _: [1_000_000]},
    "LeasesLost": {"attempts_lost": lambda _: [4]},
    "Backlog": {"recovery_scans_waiting": lambda _: [1]},
    "DeadLettersWaiting": {"ApproximateNumberOfMessagesVisible": lambda _: [1]},
    "OccurrencesMissed": {"occurrences_missed": lambda _: [1]},
    "ExpectationMissed": {"expectations_missed": lambda _: [1]},
    "CalendarEnding": {"calendars_ending": lambda _: [1]},
    "ExpansionsFailing": {"expansions_failed": lambda _: [1]},
    "HandlersUnavailable": {"handlers_unavailable": lambda _: [20]},
    "WorkerFailing": {"Errors": lambda _: [2]},
    "HandlersFailing": {"version_failures": lambda _: [4], "version_attempts": lambda _: [10]},
    "WorkerDefect": {"worker_errors": lambda _: [1]},
    "FunctionsThrottled": {"Throttles": lambda _: [7]},
    "TableThrottled": {"ThrottledRequests": lambda _: [25]},
    "StreamBehind": {"IteratorAge": lambda _: [90_000]},
    "ChangesLost": {"ApproximateNumberOfMessagesVisible": lambda _: [1]},
    "EventsRefused": {"ApproximateNumberOfMessagesVisible": lambda _: [1]},
    "ArchiveBehind": {"IteratorAge": lambda _: [4_000_000]},
    "AcceptedBurnRateFast": {"Count": lambda _: [9_000], "5xx": lambda _: [900]},
    "AcceptedBurnRateSlow": {"Count": lambda _: [9_000], "5xx": lambda _: [90]},
    "OnTimeBurnRateFast": {"lateness": lambda _: [*([200.0] * 15), *([3_000.0] * 15)]},
    "OnTimeBurnRateSlow": {"lateness": lambda _: [*([200.0] * 27), *([3_000.0] * 3)]},
}
SOON: Mapping[str, int] = {
    **dict.fromkeys(ALARMS, 10),
    "TicksIncomplete": 5,
    "AcceptedBurnRateFast": 20,
    "AcceptedBurnRateSlow": 230,
    "OnTimeBurnRateFast": 30,
    "OnTimeBurnRateSlow": 230,
}
"""The number of minutes within which an alarm must turn on."""
_QUEUES_THAT_STAY_EMPTY = ("dead_letters", "lost_changes", "rejects")


def sources_of(alarm: AlarmSpec | BurnRate) -> list[Source]:
    """Return the metrics that an alarm watches."""
    watched = alarm.level if isinstance(alarm, BurnRate) else alarm.watched
    return [*watched.sources.values()] if isinstance(watched, Expression) else [watched]


def series_of(
    alarm: AlarmSpec | BurnRate,
    day: Mapping[str, Callable[[int], Sequence[float]]],
    cause: Any = None,  # noqa: ANN401
) -> dict[str, dict[int, Sequence[float]]]:
    """Return an alarm's metrics on a kind of day, with the values that the cause produces in the middle."""
    series: dict[str, dict[int, Sequence[float]]] = {}
    for source in sources_of(alarm):
        usual = day.get(source.name, lambda _: _NONE)
        if any(each in str(source.dimensions) for each in _QUEUES_THAT_STAY_EMPTY):
            # These queues are emptied at once by their functions or by people.
            usual = QUIET[source.name]
        bad = (cause or {}).get(source.name, usual)
        series[key_of(source)] = {
            minute: (bad if BEFORE <= minute < BEFORE + BAD else usual)(minute)
            for minute in range(BEFORE + BAD + AFTER)
        }
    return series


def test_every_alarm_has_a_cause_in_this_module() -> None:
    """Every alarm has a cause in this module."""
    assert CAUSES.keys() == ALARMS.keys()


@pytest.mark.parametrize("name", ALARMS)
@pytest.mark.parametrize("day", [QUIET, BUSY], ids=["quiet", "busy"])
def test_an_alarm_is_silent_on_a_healthy_day(name: str, day: Mapping[str, Callable[[int], Sequence[float]]]) -> None:
    """An alarm stays off on a quiet day and on a busy day with its usual exceptions."""
    series = series_of(ALARMS[name], day)
    assert not [each for each in range(BEFORE, BEFORE + BAD) if is_alarming(ALARMS[name], series, each)]


@pytest.mark.parametrize("name", ALARMS)
@pytest.mark.parametrize("day", [QUIET, BUSY], ids=["quiet", "busy"])
def test_an_alarm_starts_and_ends_with_its_cause(
    name: str, day: Mapping[str, Callable[[int], Sequence[float]]]
) -> None:
    """An alarm turns on within minutes of its cause, stays on, and ends when the metrics are healthy again."""
    alarm = ALARMS[name]
    series = series_of(alarm, day, CAUSES[name])
    assert not is_alarming(alarm, series, BEFORE - 1)
    on = [each for each in range(BEFORE, BEFORE + BAD) if is_alarming(alarm, series, each)]
    assert on
    assert on[0] < BEFORE + SOON[name]
    assert len(on) == BEFORE + BAD - on[0]
    assert not is_alarming(alarm, series, BEFORE + BAD + AFTER - 1)
    # If a metric has no new values, its old values decide for some time.
    ends = alarm.minutes if isinstance(alarm, BurnRate) else alarm.minutes + FURTHER * alarm.period
    assert not is_alarming(alarm, series, BEFORE + BAD + ends)


RUNBOOK = (ROOT / "docs" / "how-to" / "respond-to-an-alarm.md").read_text(encoding="utf-8")
_COMMAND = re.compile(r"`(duetime [^`]+)`")


@pytest.mark.parametrize("line", sorted(set(_COMMAND.findall(RUNBOOK))))
def test_each_command_of_the_runbook_exists(line: str) -> None:
    """Every command in the runbook exists, with its options."""
    words = shlex.split(line)[1:]
    path = max((each for each in COMMANDS if tuple(words[: len(each)]) == each), key=len, default=None)
    assert path is not None, line
    command, _ = COMMANDS[path]
    known = {option for parameter in command.params for option in (*parameter.opts, *parameter.secondary_opts)}
    asked = {word.partition("=")[0] for word in words if word.startswith("--")}
    assert asked <= known


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`([a-z]+_[a-z_]+)`", RUNBOOK))))
def test_each_metric_and_setting_of_the_runbook_exists(name: str) -> None:
    """Every metric, setting and task field in the runbook exists."""
    settings = {each.name for each in fields(type(ENVIRONMENT))}
    schemas = document()["components"]["schemas"]
    task = {*schemas["TaskCreate"]["properties"], *schemas["Task"]["properties"]}
    assert name in {*METRICS, *settings, *task}
