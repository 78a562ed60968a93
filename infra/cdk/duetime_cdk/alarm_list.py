"""Lists a deployment's alarms, with their conditions and descriptions. Each alarm has a section in the runbook."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from duetime.domain.operating_parameters import RECOVERY_SCAN_BACKLOG
from duetime.domain.times import MINUTE, SECOND
from duetime_cdk.environments import LOCAL, FunctionName
from duetime_cdk.metric_expressions import ON_TIME_RANK, Expression, accepted, on_time
from duetime_cdk.metric_sources import function_metric, own, queue, shared, table_operation

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime_cdk.environments import Environment
    from duetime_cdk.metric_sources import Source

RUNBOOK = "docs/how-to/respond-to-an-alarm.md"
_LATE = 10 * SECOND
"""Upper limit of the lateness that is guaranteed without a fault."""
_OLDEST = 15 * MINUTE
_TICK_AGE = 5 * MINUTE
_SKEW = 3 * SECOND
"""The clock alarm's threshold, because attempts could overlap above 5 s, and DynamoDB reports whole seconds only."""
_LAG = MINUTE
_ARCHIVE_LAG = 60 * MINUTE
"""Batches are collected for five minutes, so some lag is normal; the stream keeps records for a day."""


ROLLBACK_ALARMS = (
    *("TriggerFailing", "TasksLate", "HandlersUnavailable", "WorkerFailing", "WorkerDefect"),
    *("AcceptedBurnRateFast5m", "OnTimeBurnRateFast5m"),
)
"""Alarms that roll back a deployment with a canary. The window of the fast burn rates is too long to detect failures in
a canary's small share in time, so each fast burn rate also has an alarm with a window of five minutes."""
_THROTTLED_UNSEEN = (FunctionName.EGRESS, FunctionName.TOPOLOGY, FunctionName.ATTEMPTS)
"""Functions that attempts need, and whose throttled invocations trigger no other alarm. Throttled invocations of the
API are server errors, throttled invocations of the trigger cause incomplete ticks, and throttled functions that read a
queue or a stream leave a backlog there."""
_THROTTLED_OPERATIONS = ("PutItem", "UpdateItem")
"""Write operations that every task needs. Throttled reads make ticks and requests fail, for which there are other
alarms."""
_ROLLBACK_MINUTES = 5
_FEW = 10
"""Number of successful attempts added to each version's count, so that a single failed attempt is not 100%."""
MOST_METRICS = 10
"""Maximum number of metrics of an alarm on metric math (Source: Amazon CloudWatch User Guide, "CloudWatch service
quotas")."""
OVERVIEW = "overview"
_FAILED = "dead-letters"
_OVERDUE = "tasks?q=due%3A%3Cnow&order=asc"
_SCHEDULES = "schedules"
_WORKERS = "workers"


@dataclass(frozen=True, slots=True)
class AlarmSpec:
    """An alarm.

    Attributes:
        name: name of its construct and of its runbook section.
        watched: a metric, or an expression over several metrics.
        says: description of the problem, for the recipient of the mail.
        threshold: the lowest value that triggers the alarm.
        minutes: length of the evaluated window, in minutes.
        datapoints: number of periods that must breach the threshold; 0 means all.
        period: length of one period, in minutes.
        missing_is_bad: whether missing data also triggers the alarm; in a new stack, it then does so until there is
            data.
        page: the related console page, as in the URL after `#/`.
        runbook: the alarm's section in the runbook; empty if the section has the alarm's name.

    Raises:
        ValueError: the alarm watches more metrics than CloudWatch allows.
    """

    name: str
    watched: Source | Expression
    says: str
    threshold: float = 1
    minutes: int = 5
    datapoints: int = 0
    period: int = 1
    missing_is_bad: bool = False
    page: str = OVERVIEW
    runbook: str = ""

    def __post_init__(self) -> None:
        """Reject alarms that CloudWatch would reject."""
        if isinstance(self.watched, Expression) and len(self.watched.sources) > MOST_METRICS:
            raise ValueError(f"the alarm {self.name} would watch {len(self.watched.sources)} metrics")

    @property
    def section(self) -> str:
        """The name of the alarm's runbook section."""
        return self.runbook or self.name


@dataclass(frozen=True, slots=True)
class BurnRate:
    """A burn-rate alarm, which goes off if the error budget is consumed too fast.

    Attributes:
        name: name of its construct.
        level: the share of good events, in percent.
        objective: the target share, in percent.
        factor: how many times faster than allowed the budget is consumed.
        minutes: length of the window.
        rollback_minutes: length of a shorter window, whose alarm only rolls back deployments; 0 for none.
    """

    name: str
    runbook: str
    level: Source | Expression
    says: str
    objective: float
    factor: float
    minutes: int
    rollback_minutes: int = 0

    @property
    def threshold(self) -> float:
        """The share of good events that corresponds to the burn rate."""
        return round(100 - (100 - self.objective) * self.factor, 6)


@dataclass(frozen=True, slots=True)
class AlarmList:
    """All alarms of an environment."""

    single: Sequence[AlarmSpec]
    burn_rates: Sequence[BurnRate] = field(default_factory=tuple)


def alarms(environment: Environment) -> AlarmList:
    """The alarms of an environment; the embedded AWS does not support alarms on metric math."""
    single = [*_trigger(), *_tasks(environment), _dead_letters(), *_schedules(), *_functions(environment)]
    if environment.intake_owner:
        single.append(_events_rejected())
    if environment.longest_archive_days:
        single.append(_archive_behind())
    if environment.canaries:
        single += [_trigger_failing(), *versions_watched(environment)]
    if environment.name == LOCAL:
        return AlarmList([each for each in single if not isinstance(each.watched, Expression)])
    return AlarmList(single, [*_burn_rates(environment)])


def runbook(environment: Environment, section: str) -> str:
    """The URL of an alarm's runbook section."""
    return f"{environment.docs_url}{RUNBOOK}#{section.lower()}"


def _trigger() -> list[AlarmSpec]:
    trigger = FunctionName.TRIGGER
    return [
        AlarmSpec(
            "TicksIncomplete",
            own("tick_age", "Maximum", trigger),
            "The trigger has completed no pass over the due minutes for five minutes: it is not invoked, fails, or is"
            " behind the clock",
            threshold=_TICK_AGE,
            minutes=3,
            # Missing data triggers the alarm, because a trigger that is not invoked, or fails before it reads,
            # publishes no metric.
            missing_is_bad=True,
        ),
        AlarmSpec(
            "ClockSkewed",
            own("clock_skew", "Maximum", trigger),
            "The clock of the trigger's machines differs from DynamoDB's by 3 s or more",
            threshold=_SKEW,
            datapoints=3,
        ),
    ]


def _trigger_failing() -> AlarmSpec:
    """An alarm that rolls back deployments; it goes off sooner than the alarm on missing passes."""
    return AlarmSpec(
        "TriggerFailing",
        function_metric(FunctionName.TRIGGER, "Errors", "Sum"),
        "The trigger failed in three of five minutes: its log says what it could not read",
        # A single failed tick does no harm, because the next tick makes up for it.
        datapoints=3,
        runbook="TicksIncomplete",
    )


def _tasks(environment: Environment) -> list[AlarmSpec]:
    return [
        AlarmSpec(
            "TasksLate",
            own("lateness", "p99", FunctionName.WORKER),
            "One of a hundred attempts starts 10 s or more after its planned start, in three of five minutes",
            threshold=_LATE,
            datapoints=3,
            page=_OVERDUE,
        ),
        AlarmSpec(
            "TasksFailing",
            shared("tasks_failed", "Sum"),
            f"{environment.failures_alarm} or more tasks failed for good within five minutes",
            threshold=environment.failures_alarm,
            period=5,
            page=_FAILED,
        ),
        AlarmSpec(
            "OldestDue",
            own("oldest_due", "Maximum", FunctionName.TRIGGER),
            "A task has been due for 15 minutes or more and has not started",
            threshold=_OLDEST,
            datapoints=2,
            page=_OVERDUE,
        ),
        AlarmSpec(
            "Backlog",
            own("recovery_scans_waiting", "Sum", FunctionName.TRIGGER),
            f"A queue had {RECOVERY_SCAN_BACKLOG} due tasks or more in five of ten minutes, some of them due for two"
            " minutes or more: the workers do not keep up",
            minutes=10,
            datapoints=5,
            page=_OVERDUE,
        ),
        AlarmSpec(
            "LeasesLost",
            shared("attempts_lost", "Sum"),
            "Workers vanish during attempts: ten or more attempts were lost within five minutes",
            threshold=10,
            period=5,
            page=_WORKERS,
        ),
    ]


def _dead_letters() -> AlarmSpec:
    return AlarmSpec(
        "DeadLettersWaiting",
        queue("dead_letters", "ApproximateNumberOfMessagesVisible", "Maximum", "dead letters"),
        "The dead-letter queue has not been empty for five minutes: the deadletter function is not processing it",
    )


def _schedules() -> list[AlarmSpec]:
    return [
        AlarmSpec(
            "OccurrencesMissed",
            shared("occurrences_missed", "Sum"),
            "A schedule missed occurrences: the trigger's or API's log names it, and `duetime schedules runs` lists"
            " them",
            minutes=1,
            page=_SCHEDULES,
        ),
        AlarmSpec(
            "ExpectationMissed",
            shared("expectations_missed", "Sum"),
            "A schedule has missed an expectation: the trigger's or API's log and `schedules list` name it",
            minutes=1,
            page=_SCHEDULES,
        ),
        AlarmSpec(
            "CalendarEnding",
            shared("calendars_ending", "Sum"),
            "A calendar has times for less than thirty more days: the trigger's or API's log names the calendar",
            minutes=1,
            page=_SCHEDULES,
        ),
        AlarmSpec(
            "ExpansionsFailing",
            shared("expansions_failed", "Sum"),
            "A schedule could not be expanded: the trigger's or API's log names it",
            minutes=1,
            page=_SCHEDULES,
        ),
    ]


def _functions(environment: Environment) -> list[AlarmSpec]:
    watched = [name for name in _THROTTLED_UNSEEN if name in environment.functions]
    throttles = {f"m{n}": function_metric(name, "Throttles", "Sum") for n, name in enumerate(watched)}
    refused = {
        f"m{n}": table_operation(each, "ThrottledRequests", "Sum", each) for n, each in enumerate(_THROTTLED_OPERATIONS)
    }
    return [
        AlarmSpec(
            "HandlersUnavailable",
            own("handlers_unavailable", "Sum", FunctionName.WORKER),
            "The package of handlers cannot be imported: its tasks wait, and say why in `waiting_for`",
            minutes=1,
        ),
        AlarmSpec(
            "WorkerFailing",
            function_metric(FunctionName.WORKER, "Errors", "Sum"),
            "Invocations of the worker failed in three of five minutes: it cannot start, runs out of memory or time, or"
            " ends itself",
            datapoints=3,
            page=_WORKERS,
        ),
        AlarmSpec(
            "WorkerDefect",
            shared("worker_errors", "Sum"),
            "A delivery failed in duetime's own code: the worker's or, for pull workers, the API's log has the error",
            minutes=1,
        ),
        AlarmSpec(
            "FunctionsThrottled",
            Expression("throttled invocations", _sum(throttles), throttles),
            "Lambda throttled invocations in three of five minutes: the account's concurrency is used up",
            datapoints=3,
        ),
        AlarmSpec(
            "TableThrottled",
            Expression("throttled requests", _sum(refused), refused),
            "DynamoDB throttled ten or more requests a minute in three of five minutes",
            threshold=10,
            datapoints=3,
        ),
        AlarmSpec(
            "StreamBehind",
            function_metric(FunctionName.BROADCAST, "IteratorAge", "Maximum"),
            "The reader of the table's stream is a minute or more behind: live updates and events are late",
            threshold=_LAG,
        ),
        AlarmSpec(
            "ChangesLost",
            queue("lost_changes", "ApproximateNumberOfMessagesVisible", "Maximum", "lost changes"),
            "Table changes were given up after a day: their events are missing, and the summary is wrong",
            minutes=1,
        ),
    ]


def name_of_version_alarm(package: str) -> str:
    """The name of the alarm on a version's failures, for a package or the worker (`""`)."""
    return f"HandlersFailing{package.capitalize()}"


def versions_watched(environment: Environment) -> list[AlarmSpec]:
    """An alarm on the failures in the latest version of each function that runs handlers and has a canary."""
    return [
        AlarmSpec(
            name_of_version_alarm(package),
            _failure_rate(f"$version_{package}"),
            f"{canary.failures}% of the attempts at handlers{f' of {package}' if package else ''} or more failed in"
            " the version that was deployed last: a deployment in progress is rolled back",
            threshold=canary.failures,
            period=5,
            page=_WORKERS,
            runbook="HandlersFailing",
        )
        for package, canary in environment.canaries.items()
    ]


def _failure_rate(version: str) -> Expression:
    """The share of a version's handler attempts that failed, in percent."""
    sources = {
        short: own(name, "Sum", FunctionName.WORKER, version=version)
        for short, name in (("f", "version_failures"), ("n", "version_attempts"))
    }
    return Expression("failed attempts", f"100 * FILL(f, 0) / (n + {_FEW})", sources)


def _events_rejected() -> AlarmSpec:
    return AlarmSpec(
        "EventsRefused",
        queue("rejects", "ApproximateNumberOfMessagesVisible", "Maximum", "rejected events"),
        "Some events could not become tasks: the attribute `reason` of each says why",
        minutes=1,
    )


def _archive_behind() -> AlarmSpec:
    return AlarmSpec(
        "ArchiveBehind",
        function_metric(FunctionName.ARCHIVE, "IteratorAge", "Maximum"),
        "Tasks that TTL removed an hour ago are not in the archive yet: the table's stream keeps them for only a day",
        threshold=_ARCHIVE_LAG,
    )


def _burn_rates(environment: Environment) -> list[BurnRate]:
    """Burn rates, with the long windows that Google's Site Reliability Workbook recommends (chapter 5).

    The workbook's short windows would end an alarm sooner, but each window needs a composite alarm and more metrics.
    """
    levels = (
        ("Accepted", accepted(), "Requests to the API fail", environment.accepted_objective),
        ("OnTime", _started_on_time(environment), "Attempts start late", environment.on_time_objective),
    )
    rollback = _ROLLBACK_MINUTES if environment.canaries else 0
    windows = (
        ("Fast", 14.4, 60, rollback, "2% of a month's error budget in an hour"),
        ("Slow", 6, 360, 0, "5% of a month's error budget in six hours"),
    )
    return [
        BurnRate(
            f"{name}BurnRate{speed}",
            f"{name}BurnRate",
            level,
            f"{what}: at this rate they use up {meaning} (objective: {objective:g}%)",
            objective,
            factor,
            minutes,
            short,
        )
        for name, level, what, objective in levels
        for speed, factor, minutes, short, meaning in windows
        if objective
    ]


def _started_on_time(environment: Environment) -> Source | Expression:
    """The share of attempts that start on time, including pull workers' attempts if the deployment has pulled types."""
    return on_time() if environment.pulled_types else own("lateness", ON_TIME_RANK, FunctionName.WORKER)


def _sum(sources: dict[str, Source]) -> str:
    return " + ".join(f"FILL({name}, 0)" for name in sources)
