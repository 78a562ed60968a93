"""Lists the panels of a deployment's dashboards, shared by CloudWatch and Grafana."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from duetime.domain.tasks.attempt_results import SkipCode
from duetime.domain.tasks.wait_reasons import WaitReason
from duetime_cdk.metric_expressions import QUEUES, Expression, accepted, dollars_per_million, on_time
from duetime_cdk.metric_sources import Source, api, everywhere, function_metric, own, queue, table, table_operation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime_cdk.environments import Environment

GATES = ("queue", "lease", "retry", *WaitReason)


class Unit(StrEnum):
    """The unit of a panel's values."""

    COUNT = "count"
    MILLISECONDS = "ms"
    PERCENT = "%"
    DOLLARS = "$"


@dataclass(frozen=True, slots=True)
class Panel:
    """One graph.

    Attributes:
        title: what the graph shows, in a few words.
        meaning: how to interpret the graph.
    """

    title: str
    meaning: str
    unit: Unit
    lines: Sequence[Source | Expression]

    @property
    def sources(self) -> list[Source]:
        """All metrics that the graph needs."""
        return [
            source
            for line in self.lines
            for source in (line.sources.values() if isinstance(line, Expression) else (line,))
        ]


@dataclass(frozen=True, slots=True)
class Section:
    """Panels that answer one question."""

    title: str
    panels: Sequence[Panel]


def sections(environment: Environment) -> list[Section]:
    """The sections of an environment's dashboard, from symptoms to causes."""
    return [
        Section("Health", _service_levels(environment)),
        Section("Waits", _waits(environment)),
        Section("How attempts end", _attempts(environment)),
        Section("Trigger", _trigger()),
        Section("Schedules and topologies", _schedules()),
        Section("API and intake", _requests()),
        Section("AWS", _aws(environment)),
    ]


def _service_levels(environment: Environment) -> list[Panel]:
    return [
        Panel(
            "Started on time",
            "share of attempts that start within a second of their planned start",
            Unit.PERCENT,
            [on_time()],
        ),
        Panel(
            "Accepted", "share of requests that the API did not answer with a server error", Unit.PERCENT, [accepted()]
        ),
        Panel(
            "Lateness",
            "from the planned start of an attempt to its start; waits for locks and switches move the planned start",
            Unit.MILLISECONDS,
            [
                *(own("lateness", each, "worker", each) for each in ("p50", "p99", "Maximum")),
                own("lateness", "p99", "api", "p99, pulled tasks"),
                *(own("lateness", "p99", "worker", type=each) for each in environment.metric_types),
            ],
        ),
        Panel("Tasks that ended", "throughput", Unit.COUNT, _sums("tasks_succeeded", "tasks_cancelled")),
        Panel(
            "Tasks that failed for good",
            "tasks without an attempt left; run them again with `duetime dead-letters retry`",
            Unit.COUNT,
            [
                *_sums("tasks_failed", "tasks_rolled_back", "tasks_expired"),
                *(
                    source
                    for each in environment.metric_owners
                    for source in everywhere("tasks_failed", "Sum", owner=each)
                ),
            ],
        ),
        Panel(
            "Dollars per million tasks",
            "estimated from used units at assumed list prices (docs/reference/costs.md); storage, logs and the API's"
            " own price are left out",
            Unit.DOLLARS,
            [dollars_per_million(environment)],
        ),
    ]


def _waits(environment: Environment) -> list[Panel]:
    del environment
    return [
        Panel(
            "Waiting time by gate",
            "total milliseconds that due tasks waited at each gate",
            Unit.MILLISECONDS,
            [own("wait", "Sum", "worker", gate, gate=gate) for gate in GATES],
        ),
        Panel(
            "Longest wait",
            "the longest single wait, for any reason",
            Unit.MILLISECONDS,
            everywhere("wait", "Maximum"),
        ),
        Panel(
            "Messages in the queues",
            "due tasks that no worker has received yet",
            Unit.COUNT,
            [queue(each, "ApproximateNumberOfMessagesVisible", "Maximum", each) for each in QUEUES],
        ),
        Panel(
            "Oldest task that is due",
            "found by recovery scans, which run at least two minutes after the due time",
            Unit.MILLISECONDS,
            everywhere("oldest_due", "Maximum"),
        ),
        Panel(
            "Checks that started nothing",
            "tasks that were postponed, and the cause",
            Unit.COUNT,
            [*_sums("tasks_postponed", "calls_not_sent", "handlers_unavailable"), *_sums("locks_handed_on")],
        ),
        Panel(
            "Circuit breakers",
            "circuits for HTTP hosts that keep failing",
            Unit.COUNT,
            _sums("circuits_opened", "circuits_closed"),
        ),
    ]


def _attempts(environment: Environment) -> list[Panel]:
    return [
        Panel(
            "Duration of attempts",
            "the running time of targets",
            Unit.MILLISECONDS,
            [
                *(own("duration", each, "worker", each) for each in ("p50", "p99", "Maximum")),
                own("duration", "p99", "api", "p99, pulled and asynchronous tasks"),
                *(own("duration", "p99", "worker", type=each) for each in environment.metric_types),
            ],
        ),
        Panel(
            "Attempts",
            "attempts that failed, are retried, or were deferred to their target",
            Unit.COUNT,
            _sums("attempts_failed", "tasks_retried", "tasks_deferred"),
        ),
        Panel(
            "Lost attempts and leases",
            "workers that vanished, or ended their own process",
            Unit.COUNT,
            _sums("attempts_lost", "leases_lost", "processes_ended"),
        ),
        Panel(
            "Claims rejected", "duplicate and stale messages, which are harmless", Unit.COUNT, _sums("claims_rejected")
        ),
        Panel(
            "After the outcome",
            "callbacks, notices and `clean`",
            Unit.COUNT,
            _sums("callbacks_failed", "notices_sent", "notices_failed", "cleanups_failed"),
        ),
        Panel(
            "Dead letters",
            "messages in the dead-letter queue, and tasks that were enqueued again",
            Unit.COUNT,
            [
                queue("dead_letters", "ApproximateNumberOfMessagesVisible", "Maximum", "in the queue"),
                *_sums("dead_letters_sent_again"),
            ],
        ),
        Panel(
            "Errors in duetime's own code",
            "the number should be zero",
            Unit.COUNT,
            _sums(
                "worker_errors",
                "dead_letter_errors",
                "expansions_failed",
                "unreadable",
                "broadcast_failures",
                "task_lists_begun_anew",
                "stream_records_unreadable",
                "removed_records_unreadable",
                "audit_records_lost",
            ),
        ),
        Panel(
            "Live updates",
            "messages to WebSocket connections",
            Unit.COUNT,
            _sums("watch_messages_sent", "watch_connections_gone", "watch_pushes_refused", "watch_pushes_lost"),
        ),
        Panel(
            "Events", "events published to the event bus or lost", Unit.COUNT, _sums("events_published", "events_lost")
        ),
        Panel("Archive", "ended tasks that TTL removed from the table", Unit.COUNT, _sums("tasks_archived")),
    ]


def _trigger() -> list[Panel]:
    return [
        Panel(
            "Lag",
            "delay of the first reading of minutes, and time since the last complete pass began",
            Unit.MILLISECONDS,
            [*everywhere("cursor_lag", "Maximum"), *everywhere("tick_age", "Maximum")],
        ),
        Panel(
            "Sent",
            "messages sent for due tasks",
            Unit.COUNT,
            _sums("dispatched", "timers_recovered", "messages_unsent"),
        ),
        Panel(
            "Ticks",
            "runs of the trigger: heartbeat sent, overlap with another run, queue skipped",
            Unit.COUNT,
            _sums(
                "heartbeats",
                "heartbeats_unsent",
                "shard_groups_held",
                "shard_groups_taken_over",
                "recovery_scans_waiting",
            ),
        ),
        Panel(
            "Clock",
            "difference from DynamoDB's clock, which has a resolution of 1 s",
            Unit.MILLISECONDS,
            [*everywhere("clock_skew", "Maximum"), *_sums("clock_wrong")],
        ),
    ]


def _schedules() -> list[Panel]:
    return [
        Panel(
            "Occurrences",
            "tasks that schedules created or missed",
            Unit.COUNT,
            _sums("occurrences", "occurrences_missed", "expectations_missed", "calendars_ending"),
        ),
        Panel(
            "Skipped occurrences",
            "number of skipped occurrences by reason",
            Unit.COUNT,
            [
                *_sums("tasks_skipped"),
                *(source for code in SkipCode for source in everywhere("tasks_skipped", "Sum", reason=code)),
            ],
        ),
        Panel("AWS jobs", "jobs that were stopped", Unit.COUNT, _sums("jobs_stopped")),
        Panel("Topologies", "executions that were lost and replaced", Unit.COUNT, _sums("topology_executions_lost")),
    ]


def _requests() -> list[Panel]:
    return [
        Panel(
            "Requests",
            "all requests to the API",
            Unit.COUNT,
            [api("Count", "Sum", "requests"), api("4xx", "Sum", "client errors"), api("5xx", "Sum", "server errors")],
        ),
        Panel(
            "Response time",
            "time until the API responds, including requests that wait for an outcome",
            Unit.MILLISECONDS,
            [api("Latency", each, each) for each in ("p50", "p99")],
        ),
        Panel(
            "Waiting and leasing",
            "requests that could not wait, and leases that no pull worker received",
            Unit.COUNT,
            _sums("long_polls_refused", "leases_too_late", "leases_unacknowledged"),
        ),
        Panel(
            "Events",
            "events that became tasks, cancelled tasks, matched no rule or were refused",
            Unit.COUNT,
            _sums("intake_tasks", "intake_cancels", "intake_signals", "intake_unmatched", "intake_refused"),
        ),
    ]


def _aws(environment: Environment) -> list[Panel]:
    deployed = environment.functions
    return [
        Panel(
            f"{title} of the functions",
            meaning,
            Unit.COUNT,
            [function_metric(name, metric, statistic) for name in deployed],
        )
        for title, meaning, metric, statistic in (
            ("Errors", "invocations that failed", "Errors", "Sum"),
            ("Throttles", "invocations that Lambda refused", "Throttles", "Sum"),
            ("Concurrency", "concurrent invocations", "ConcurrentExecutions", "Maximum"),
        )
    ] + [
        Panel(
            "Units of the table",
            "units that the table consumed, without its indexes",
            Unit.COUNT,
            [
                table("ConsumedWriteCapacityUnits", "Sum", "write units"),
                table("ConsumedReadCapacityUnits", "Sum", "read units"),
            ],
        ),
        Panel(
            "Throttled requests to the table",
            "each request is retried; many throttled requests make tasks late",
            Unit.COUNT,
            [table_operation(each, "ThrottledRequests", "Sum", each) for each in THROTTLED],
        ),
    ]


THROTTLED = ("PutItem", "UpdateItem", "GetItem", "Query", "BatchGetItem")


def _sums(*names: str) -> list[Source]:
    return [source for name in names for source in everywhere(name, "Sum")]
