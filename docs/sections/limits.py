"""Generates the lists of limits and intervals from the code."""

from __future__ import annotations

import ast
import inspect
import re
from typing import TYPE_CHECKING

from docs.sections.markdown import bullets, code, documented
from duetime.domain import limits, operating_parameters
from duetime.domain.times import DAY, HOUR, MINUTE, SECOND
from duetime_common import limits as shared_limits

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import ModuleType

_UNITS = ((DAY, "day"), (HOUR, "hour"), (MINUTE, "minute"), (SECOND, "second"), (1, "millisecond"))
_LIMITS = (shared_limits, limits)
_MODULES = (*_LIMITS, operating_parameters)
_UNIT_NAMES = frozenset({"DAY", "HOUR", "MINUTE", "SECOND"})
_PLAIN_TIMES = frozenset({"CLAIM_LEAD", "LATEST_SEND", "SEND_STEP"})
"""Durations that the code writes as plain numbers of milliseconds, so that they cannot be recognized by a unit."""
_NOTICED = frozenset({
    "ATTEMPTS_INLINE", "INLINE_CONTENT_BYTES", "ITEM_CONTENT_BYTES", "HANDLERS_RETRY", "LOCK_CHECK_INTERVAL",
    "LONGEST_NOT_SENT_WAIT", "MAX_HOLD", "MISSED_AFTER", "ON_TIME", "OVERLAP_CHECK_INTERVAL", "TOPOLOGY_MARGIN",
})  # fmt: skip
"""Record limits and internal intervals whose effects users and operators notice."""
_BOUNDS = frozenset({
    "DEFAULT_APPROVAL_SECONDS", "DEFAULT_BATCH_SIZE", "DEFAULT_BATCH_WAIT_SECONDS", "DEFAULT_EVENT_SECONDS",
    "MAX_ATTEMPTS", "MAX_BACKFILL_PER_MINUTE", "MAX_BULK_PACE", "MAX_CALENDARS", "MAX_CALENDAR_WINDOWS",
    "MAX_CATCH_UP_SECONDS", "MAX_DATES", "MAX_DEADLINE_SECONDS", "MAX_DEBOUNCE_SECONDS", "MAX_DEPENDENCIES",
    "MAX_EXPECTED_SECONDS", "MAX_EXPECT_DURATION_FACTOR", "MAX_EXPECT_EVERY_SECONDS", "MAX_EXPIRES_SECONDS",
    "MAX_FAIR_WEIGHT", "MAX_HANDLER_BATCH", "MAX_HANDLER_BATCH_WAIT_SECONDS", "MAX_HTTP_FIELDS",
    "MAX_INTAKE_RULE_FIELDS", "MAX_JITTER_SECONDS", "MAX_LATE_SECONDS", "MAX_LEASES", "MAX_LEASE_SECONDS", "MAX_LOCKS",
    "MAX_LOCK_HOLDERS", "MAX_LOCK_WAIT_SECONDS", "MAX_LOOKBACK_SECONDS", "MAX_OCCURRENCES", "MAX_OUTPUTS",
    "MAX_PARAMETERS", "MAX_PARAMETER_VALUES", "MAX_PULLED_TIMEOUT_SECONDS", "MAX_PULLED_TYPES",
    "MAX_PULL_WAIT_SECONDS", "MAX_QUOTA", "MAX_RATE_LIMIT", "MAX_RATE_SECONDS", "MAX_RERUN_NODES",
    "MAX_RETRY_DURATION_SECONDS", "MAX_RETRY_MULTIPLIER", "MAX_RETRY_WAIT_SECONDS", "MAX_RUNNING_SECONDS",
    "MAX_SUCCESS_STATUSES", "MAX_TAGS", "MAX_TIMINGS", "MAX_WAIT_SECONDS", "MIN_BULK_PACE",
    "MIN_EXPECT_DURATION_FACTOR", "MIN_EXPECT_EVERY_SECONDS", "MIN_LATE_SECONDS", "MIN_LEASE_SECONDS",
})  # fmt: skip
"""Bounds and defaults of individual fields and parameters, which the OpenAPI document states."""
_DESCRIBED = frozenset({
    "ACTIONS_INLINE", "BULK_RETENTION", "GROUP_LIFE", "IDEMPOTENCY_KEY_LIFE", "LEASE_SECONDS",
    "MAX_DEFINITION_VERSIONS", "MAX_EXAMINED", "MAX_EXPANDED_BYTES", "MAX_EXPANDED_PAGE", "MAX_INTAKE_RULES",
    "MAX_QUERY_ANSWER_BYTES", "MAX_TYPES_WITH_DEFAULTS", "PURGE_RETENTION", "QUERY_TIMEOUT", "SIGNAL_LIFE",
})  # fmt: skip
"""Limits that the OpenAPI document states in an operation's description."""
_UNNOTICED = frozenset({
    "ACTIONS_INLINE_BYTES", "LEAST_LEASE_SHARE", "MAX_ARCHIVE_DAYS", "MAX_BULK_PAGE",
    "MAX_COUNTED_OPEN", "MAX_EXPLAINED_LINE", "MAX_EXPLAINED_PLACES", "MAX_EXPLAINED_TASKS", "MAX_METRIC_VALUES",
    "MAX_PUSHED_CHANGES", "MAX_RECORDED_WAITS", "MAX_REMARKS", "MAX_RETENTION_DAYS", "MAX_REVISION_ENDS",
    "MAX_STOPPED_OCCURRENCES", "MAX_SUMMARY_OWNERS", "MAX_SUMMARY_TYPES", "MAX_TRACEBACK_BYTES", "MAX_WORKER_BATCH",
    "SHORTEST_WORKER_LEASE_SECONDS",
})  # fmt: skip
"""Limits that no request can reach, and bounds of settings, which the settings page states."""
_NUMBER_OF = "Maximum number of "
_SOURCE = re.compile(r" ?\(Source: .*?\)(?=[.;]|$)")
_SECOND_SENTENCE = re.compile(r"\. .*$")
_REASON = re.compile(r"(?:\. |; |(?<!`overlap): |, (?:because|which) ).*$")


class LimitUnexplained(LookupError):
    """A limit has no docstring in the code."""


def limit_list() -> str:
    """List the limits of requests and records, without their reasons and without the limits of individual fields."""
    return _list(_LIMITS, _REASON)


def interval_list() -> str:
    """List the internal intervals and sizes that users and operators notice."""
    return _list((operating_parameters,), _SECOND_SENTENCE)


def _list(modules: Iterable[ModuleType], rest: re.Pattern[str]) -> str:
    """List each limit with its value and its meaning, without the source and without text that `rest` matches."""
    times = _times()
    rows = [
        (
            code(name),
            _value(getattr(module, name), is_time=name in times),
            _without_number(rest.sub(".", _SOURCE.sub("", _explained(name, text)))),
        )
        for module in modules
        for name, text in documented(module).items()
        if name in vars(module) and name.isupper() and not _is_length(name)
        if (module in _LIMITS and name not in _BOUNDS | _DESCRIBED | _UNNOTICED) or name in _NOTICED
    ]
    return bullets(rows)


def _without_number(text: str) -> str:
    """Return the text without "Maximum number of", which the name and the value on the page already say."""
    counted = text.removeprefix(_NUMBER_OF)
    return counted[:1].upper() + counted[1:]


def _times() -> frozenset[str]:
    """Return the names of limits that are durations; in the code, their values contain a unit or another duration."""
    found = set(_UNIT_NAMES | _PLAIN_TIMES)
    for node in (node for module in _MODULES for node in ast.parse(inspect.getsource(module)).body):
        if isinstance(node, ast.Assign) and found & {
            one.id for one in ast.walk(node.value) if isinstance(one, ast.Name)
        }:
            found |= {target.id for target in node.targets if isinstance(target, ast.Name)}
    return frozenset(found)


def _value(value: float | tuple[int, ...], *, is_time: bool) -> str:
    if is_time:
        return ", ".join(_length(each) for each in (value if isinstance(value, tuple) else (value,)))
    return f"{value:,}"


def _length(milliseconds: int) -> str:
    size, unit = next((size, unit) for size, unit in _UNITS if milliseconds % size == 0)
    number = milliseconds // size
    return f"{number:,} {unit}{'' if number == 1 else 's'}"


def _is_length(name: str) -> bool:
    return name.endswith("_LENGTH")


def _explained(name: str, text: str) -> str:
    """Return the docstring of a limit in the code.

    Raises:
        LimitUnexplained: the limit has no docstring.
    """
    if not text:
        raise LimitUnexplained(name)
    return text
