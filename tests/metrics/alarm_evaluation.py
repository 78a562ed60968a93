"""Evaluates alarms as CloudWatch does, for replaying metrics.

Source: Amazon CloudWatch User Guide, "Alarm evaluation" and "Configuring how CloudWatch alarms treat missing data". An
    alarm looks at a longer range than its evaluation periods. If this range has enough values, the latest values
    decide; otherwise missing values are treated as the alarm specifies.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from duetime_cdk.alarm_list import AlarmSpec, BurnRate
from duetime_cdk.metric_expressions import Expression

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from duetime_cdk.metric_sources import Source


FURTHER = 2
"""How many periods an alarm's range has beyond the evaluation periods; CloudWatch does not document the number.
"""
_FILL = re.compile(r"FILL\((\w+), 0\)")
_RANK = re.compile(r"PR\(:(\d+)\)")
"""A percentile rank, which is the percentage of values that are at most this number."""


def key_of(source: Source) -> str:
    """Return a metric's identity in a deployment, which is its name and its dimensions."""
    return " ".join([source.name, *(f"{key}={value}" for key, value in sorted(source.dimensions.items()))])


def is_alarming(alarm: AlarmSpec | BurnRate, series: Mapping[str, Mapping[int, Sequence[float]]], minute: int) -> bool:
    """Return whether an alarm is in ALARM at the end of a minute.

    Args:
        alarm: a single alarm, or a burn rate.
        series: values by metric (its `key_of`) and by the minute in which they were recorded; metrics without values
            are omitted.
        minute: the last minute that is evaluated.
    """
    if isinstance(alarm, BurnRate):
        level = _value(alarm.level, series, minute, alarm.minutes)
        return level is not None and level < alarm.threshold
    periods = -(-alarm.minutes // alarm.period)
    values = [
        _value(alarm.watched, series, minute - each * alarm.period, alarm.period) for each in range(periods + FURTHER)
    ]
    real = [each for each in values if each is not None][:periods]
    breaching = sum(each >= alarm.threshold for each in real)
    if alarm.missing_is_bad:
        breaching += periods - len(real)
    return breaching >= (alarm.datapoints or periods)


def _value(
    watched: Source | Expression, series: Mapping[str, Mapping[int, Sequence[float]]], minute: int, length: int
) -> float | None:
    """Return the value for the period that ends with a minute, or `None` if it is missing."""
    if not isinstance(watched, Expression):
        return _statistic(watched, series, minute, length)
    found = {name: _statistic(source, series, minute, length) for name, source in watched.sources.items()}
    if all(each is None for each in found.values()):
        return None
    formula = _FILL.sub(lambda match: str(found[match[1]] or 0.0), watched.formula)
    named = set(re.findall(r"\b[a-z]\d*\b", formula))
    if any(found[each] is None for each in named):
        return None
    try:
        result = eval(formula, {"__builtins__": {}}, found)  # noqa: S307 - a formula in this project
    except ZeroDivisionError:
        return None
    return float(result)


def _statistic(
    source: Source, series: Mapping[str, Mapping[int, Sequence[float]]], minute: int, length: int
) -> float | None:
    minutes = series.get(key_of(source), {})
    values = sorted(value for each in range(minute - length + 1, minute + 1) for value in minutes.get(each, ()))
    if not values:
        return None
    match source.statistic:
        case "Sum":
            return sum(values)
        case "SampleCount":
            return len(values)
        case "Maximum":
            return values[-1]
        case "Minimum":
            return values[0]
        case statistic if rank := _RANK.fullmatch(statistic):
            return 100 * sum(each <= float(rank[1]) for each in values) / len(values)
        case "p99":
            return values[-(-len(values) * 99 // 100) - 1]
        case other:
            raise ValueError(other)
