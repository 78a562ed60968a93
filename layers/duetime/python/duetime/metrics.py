"""Defines all metrics of the functions in one table.

Dashboards, alarms and the reference page are generated from this table. Functions do not import this module, but use a
metric's name where they count it. A test fails if a counted metric is missing here, or if a metric here is not counted.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping


class Unit(StrEnum):
    """The units of metrics, by CloudWatch's names."""

    COUNT = "Count"
    MILLISECONDS = "Milliseconds"


class Dimension(StrEnum):
    """A dimension that a metric can have in addition to the function. CloudWatch bills each value as a metric."""

    GATE = "gate"
    """The reason why a task waits: one of the codes of `waiting_for.reason`, or `queue`, `lease` or `retry`."""
    REASON = "reason"
    """The reason why an action was not carried out, from a fixed list."""
    OWNER = "owner"
    """A task's owner. Only the owners in the setting `metric_owners` have separate metrics."""
    TYPE = "type"
    """A task's type. Only the types in the setting `metric_types` have separate metrics."""
    VERSION = "version"
    """The name and version of the Lambda function that ran an attempt, as `name:version`."""


@frozen
class Metric:
    """A metric that functions write.

    Attributes:
        unit: the unit of the metric's values.
        functions: the functions that write the metric.
        meaning: what one value means.
        dimension: the dimension in addition to the function; the total is always written too.
    """

    unit: Unit
    functions: tuple[str, ...]
    meaning: str
    dimension: Dimension | None = None


def _count(functions: str, meaning: str, dimension: Dimension | None = None) -> Metric:
    return Metric(Unit.COUNT, tuple(functions.split()), meaning, dimension)


def _time(functions: str, meaning: str, dimension: Dimension | None = None) -> Metric:
    return Metric(Unit.MILLISECONDS, tuple(functions.split()), meaning, dimension)


_ANYWHERE = "api worker deadletter topology"

METRICS: Mapping[str, Metric] = {
    # Metrics of tasks and their attempts.
    "lateness": _time(
        "worker api",
        "time from an attempt's planned start to its actual start; the number of values is the number of starts",
        Dimension.TYPE,
    ),
    "wait": _time(
        "worker api topology",
        "how long a due task waits: until a worker receives it (`queue`), until another worker takes it over from a"
        " worker that vanished (`lease`), or until its next check, because of a lock, a switch, a retry and so on",
        Dimension.GATE,
    ),
    "duration": _time(
        "worker api topology",
        "how long a target ran in one attempt; for an asynchronous target, until the end of the attempt was reported",
        Dimension.TYPE,
    ),
    "tasks_succeeded": _count(_ANYWHERE, "tasks that succeeded"),
    "tasks_failed": _count(_ANYWHERE, "tasks that failed for good", Dimension.OWNER),
    "tasks_cancelled": _count(_ANYWHERE, "tasks that were cancelled while an attempt was running or about to start"),
    "tasks_rolled_back": _count(_ANYWHERE, "tasks that were rolled back"),
    "tasks_retried": _count(_ANYWHERE, "attempts after which another attempt was scheduled"),
    "attempts_failed": _count(_ANYWHERE, "attempts that failed, including those that were retried"),
    "version_attempts": _count(
        "worker", "attempts that called a Python handler, by version; only with the setting `canary`", Dimension.VERSION
    ),
    "version_failures": _count("worker", "attempts of `version_attempts` that failed", Dimension.VERSION),
    "attempts_lost": _count("worker api", "attempts whose worker vanished, found when the task was claimed again"),
    "leases_lost": _count(
        "worker", "leases that a worker lost, or could not renew in time, so that the worker ends its process"
    ),
    "tasks_postponed": _count(_ANYWHERE, "checks of tasks that could not start; `wait` names the reason"),
    "tasks_deferred": _count("worker", "attempts whose target accepted the work and reports the outcome later"),
    "tasks_skipped": _count(
        "worker api",
        "occurrences that were dropped when claimed, because their schedule was `deleted`, `paused` or `changed`,"
        " or its previous run is still running (`overlap`)",
        Dimension.REASON,
    ),
    "tasks_expired": _count(
        "worker api",
        "tasks that failed because they had not started within their `expires_seconds`; `tasks_failed` counts them too",
        Dimension.TYPE,
    ),
    "claims_rejected": _count(
        "worker api", "claims and outcomes that were rejected because of duplicates, stale messages or takeovers"
    ),
    "calls_not_sent": _count(
        "worker", "calls that were not sent because the egress function or an AWS service was throttled"
    ),
    "handlers_unavailable": _count("worker", "tasks that wait because their handler package cannot be imported"),
    "circuits_opened": _count("worker", "HTTP hosts whose circuit breaker opened"),
    "circuits_closed": _count("worker", "HTTP hosts whose circuit breaker closed"),
    "notices_sent": _count(
        "worker", "`notify_on` notices that were sent for final failures, late starts and long runs"
    ),
    "notices_failed": _count(
        "worker",
        "`notify_on` notices that failed after all retries; recovery scans repeat those of late starts and long runs",
    ),
    "callbacks_failed": _count(
        _ANYWHERE, "callbacks that failed after all retries within a day; the task's outcome does not change"
    ),
    "cleanups_failed": _count("worker", "targets whose `clean` failed; the task's outcome does not change"),
    "locks_handed_on": _count(_ANYWHERE, "locks that were reserved for the next waiting task"),
    "leases_too_late": _count(
        "api", "leases that were not returned to a pull worker because less than half of their time was left"
    ),
    "leases_unacknowledged": _count(
        "api",
        "leases that ended without a heartbeat or report and were taken over; most never reached a worker",
    ),
    "topology_executions_lost": _count("worker", "topology executions that failed and are replaced"),
    "jobs_stopped": _count(
        "worker", "AWS jobs that were stopped because they were cancelled or exceeded their time limit"
    ),
    "processes_ended": _count(
        "worker", "times a worker ended its own process because a target did not end in time or a lease was lost"
    ),
    # The trigger.
    "dispatched": _count("trigger", "messages sent when a minute is first read"),
    "cursor_lag": _time(
        "trigger", "delay of the first read of a minute; not written while the trigger reads ahead in time"
    ),
    "tick_age": _time(
        "trigger",
        "time since the last complete pass over the minutes began, plus up to a minute; up to 2 minutes is normal",
    ),
    "oldest_due": _time(
        "trigger",
        "how long the oldest task that a recovery scan found open has been due; not written without such a task",
    ),
    "heartbeats": _count("trigger", "heartbeats sent to the monitor at `heartbeat_url`"),
    "heartbeats_unsent": _count("trigger", "heartbeats that the egress function did not accept"),
    "timers_recovered": _count(
        "trigger", "messages that a recovery scan sent again because the first message was lost or is late"
    ),
    "recovery_scans_waiting": _count("trigger", "queues that a recovery scan skipped because of their backlog"),
    "messages_unsent": _count("trigger", "messages that SQS did not acknowledge; the next tick sends them"),
    "clock_skew": _time(
        "trigger", "difference between the function's clock and DynamoDB's, if it is at least the resolution of 1 s"
    ),
    "clock_wrong": _count("trigger", "ticks that did nothing because `clock_skew` was more than 30 s"),
    "shard_groups_held": _count("trigger", "ticks that found another tick running"),
    "shard_groups_taken_over": _count(
        "trigger", "ticks that took so long that another tick took over; their work still counts"
    ),
    # Schedules.
    "occurrences": _count("trigger", "tasks that expansions of schedules created"),
    "occurrences_missed": _count(
        "trigger api", "occurrences of schedules that were missed, whether or not the latest is caught up"
    ),
    "expectations_missed": _count(
        "trigger api",
        "deadlines of `expect_success_by` and `expect_every_seconds` that schedules missed; the log names the schedule",
    ),
    "calendars_ending": _count(
        "trigger api",
        "schedules with a calendar whose times are known for less than thirty more days; the log names "
        "the schedule and the calendar",
    ),
    "expansions_failed": _count("trigger api", "expansions of schedules that failed; should be zero"),
    # The other functions.
    "dead_letters_sent_again": _count("deadletter", "dead letters whose task was enqueued again"),
    "dead_letter_errors": _count("deadletter", "dead letters that failed in duetime's own code; should be zero"),
    "worker_errors": _count("worker api", "deliveries that failed in duetime's own code; should be zero"),
    "unreadable": _count(
        "api worker trigger deadletter bulk topology",
        "messages in an unknown format, and items that this version cannot read",
    ),
    "broadcast_failures": _count(
        "broadcast", "batches of changes that live updates, events or the summary could not process; should be zero"
    ),
    "task_lists_begun_anew": _count(
        "broadcast", "an owner's lists that missed changes after an outage or because too many changes came at once"
    ),
    "events_published": _count("broadcast", "events that were put on the event bus"),
    "events_lost": _count(
        "broadcast", "events that the bus refused four times; their tasks and schedules are not affected"
    ),
    "tasks_archived": _count("archive", "ended tasks that were copied to the archive when TTL removed them"),
    "removed_records_unreadable": _count(
        "archive",
        "removed records that this version cannot read completely; they are kept unchanged under `unreadable/`, or "
        "archived without payload and result; should be zero",
    ),
    "watch_messages_sent": _count("broadcast", "messages that were sent to WebSocket connections"),
    "watch_connections_gone": _count("broadcast", "connections that were removed because they no longer existed"),
    "watch_pushes_refused": _count("broadcast", "messages that API Gateway refused; clients then read the data again"),
    "watch_pushes_lost": _count("broadcast", "pushes that failed; clients then read the data again"),
    "stream_records_unreadable": _count(
        "broadcast", "table changes that were skipped because this version cannot read them"
    ),
    "long_polls_refused": _count(
        "api", "requests that got an immediate response instead of waiting, because of the limit `long_polls`"
    ),
    "audit_records_lost": _count(
        "api", "requests whose audit record could not be stored; the function's log has the record; should be zero"
    ),
    "intake_tasks": _count("intake", "events that became tasks, including repeats"),
    "intake_cancels": _count("intake", "events that triggered a cancellation of tasks, including repeats"),
    "intake_signals": _count("intake", "events that sent a signal, including repeats"),
    "intake_unmatched": _count("intake", "events that match no intake rule"),
    "intake_refused": _count("intake", "events that are not valid tasks, or that lack a value that a rule needs"),
}
"""All metrics, by name."""

NAMESPACE = "duetime"
"""Prefix of the metrics' CloudWatch namespace; the environment's name follows the prefix."""
