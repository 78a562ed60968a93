"""Computes the demo's results from the executions recorded by the receiver and the states reported by the API."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from duetime_local.demo_receiver import Execution

SUCCEEDED = "succeeded"
FAILED = "failed"
OUTCOMES = frozenset({SUCCEEDED, FAILED})


@dataclass(frozen=True, slots=True)
class Lateness:
    """Percentiles and maximum of the milliseconds from a task's due time to the start of its first attempt."""

    p50: float
    p99: float
    max: float

    def as_json(self) -> dict[str, float]:
        """The figures as `--json` writes them."""
        return {name: round(getattr(self, name), 1) for name in ("p50", "p99", "max")}


@dataclass(frozen=True, slots=True)
class RecurringFigures:
    """The results of the demo's schedules."""

    schedules: int
    expected: int
    """The number of expected occurrences."""
    ran: int
    """The number of occurrences whose task ran and succeeded."""
    missed: int
    doubled: int
    """The number of tasks that ran beyond the first one at each occurrence."""
    strange: int
    """The number of unexpected times at which tasks were due and ran."""
    lateness_ms: Lateness

    @property
    def promises_kept(self) -> bool:
        """Whether each schedule ran exactly once at each expected time, and never at another time."""
        return not (self.missed or self.doubled or self.strange)

    def as_json(self) -> dict[str, Any]:
        """The figures as `--json` writes them."""
        names = ("schedules", "expected", "ran", "missed", "doubled", "strange")
        return {**{name: getattr(self, name) for name in names}, "lateness_ms": self.lateness_ms.as_json()}


@dataclass(frozen=True, slots=True)
class GraphFigures:
    """The results of the demo's workflow."""

    name: str
    nodes: int
    edges: int
    ran: int
    """The number of nodes that ran exactly once and succeeded."""
    before_parents: int
    """The number of dependencies in which the child node started before the parent node had ended."""
    succeeded: bool
    """Whether the API reports that the topology succeeded."""
    seconds: float
    """Seconds from the topology's creation to the end of its last node."""
    shortest_seconds: float
    """The length of the topology's critical path, in seconds."""

    @property
    def ratio(self) -> float:
        """The topology's total duration divided by the length of its critical path."""
        return self.seconds / self.shortest_seconds

    @property
    def promises_kept(self) -> bool:
        """Whether the topology succeeded, and each node ran exactly once, after all of its parents had ended."""
        return self.succeeded and self.ran == self.nodes and not self.before_parents

    def as_json(self) -> dict[str, Any]:
        """The figures as `--json` writes them."""
        names = ("name", "nodes", "edges", "ran", "before_parents", "succeeded")
        times = {"seconds": self.seconds, "shortest_seconds": self.shortest_seconds, "ratio": self.ratio}
        return {
            **{name: getattr(self, name) for name in names},
            **{name: round(value, 3) for name, value in times.items()},
        }


@dataclass(frozen=True, slots=True)
class Figures:
    """The results of the demo."""

    accepted: int
    succeeded: int
    """The number of tasks that succeeded according to both the API and the receiver."""
    retried: int
    """The number of tasks that were executed more than once."""
    failed: int
    lost: int
    """The number of accepted tasks without an outcome."""
    doubled: int
    """The number of tasks with concurrent executions, or with another execution after a success."""
    early: int
    """The number of tasks that started before their due time."""
    lateness_ms: Lateness
    seconds_to_first_task: float
    recurring: RecurringFigures | None = None
    """The results of the schedules; `None` if the demo had no schedules."""
    graph: GraphFigures | None = None
    """The results of the workflow; `None` if no workflow was run."""

    @property
    def promises_kept(self) -> bool:
        """Whether no task was lost, ran twice or started early, and the schedules and the workflow ran correctly."""
        others = [part for part in (self.recurring, self.graph) if part is not None]
        return all(part.promises_kept for part in others) and not (self.lost or self.doubled or self.early)

    def as_json(self) -> dict[str, Any]:
        """The figures as `--json` writes them."""
        names = ("accepted", "succeeded", "retried", "failed", "lost", "doubled", "early")
        return {
            **{name: getattr(self, name) for name in names},
            "lateness_ms": self.lateness_ms.as_json(),
            "seconds_to_first_task": round(self.seconds_to_first_task, 2),
            **({} if self.recurring is None else {"recurring": self.recurring.as_json()}),
            **({} if self.graph is None else {"graph": self.graph.as_json()}),
        }


def count(
    due_ms: Mapping[str, int], executions: Iterable[Execution], states: Mapping[str, str], began_ms: int
) -> Figures:
    """Count the results of the accepted tasks, given their due times and last known states by task id."""
    by_task: dict[str, list[Execution]] = defaultdict(list)
    # The set removes duplicates, because a report can arrive twice.
    for execution in sorted(set(executions), key=lambda one: (one.started_at_ms, one.fence)):
        if execution.task_id in due_ms:
            by_task[execution.task_id].append(execution)
    proven = {task_id for task_id, ran in by_task.items() if any(one.succeeded for one in ran)}
    succeeded = sum(states.get(task_id) == SUCCEEDED for task_id in proven)
    failed = sum(states.get(task_id) == FAILED for task_id in due_ms)
    starts = {task_id: ran[0].started_at_ms for task_id, ran in by_task.items()}
    return Figures(
        accepted=len(due_ms),
        succeeded=succeeded,
        retried=sum(len(ran) > 1 for ran in by_task.values()),
        failed=failed,
        lost=len(due_ms) - succeeded - failed,
        doubled=sum(_doubled(ran) for ran in by_task.values()),
        early=sum(start < due_ms[task_id] for task_id, start in starts.items()),
        lateness_ms=lateness([start - due_ms[task_id] for task_id, start in starts.items()]),
        seconds_to_first_task=(min(starts.values(), default=began_ms) - began_ms) / 1000,
    )


def lateness(milliseconds: Sequence[float]) -> Lateness:
    """Compute percentiles by nearest rank, so that each result is a measured value."""
    ranked = sorted(milliseconds) or [0.0]

    def percentile(percent: int) -> float:
        return ranked[max(0, -(-len(ranked) * percent // 100) - 1)]

    return Lateness(percentile(50), percentile(99), ranked[-1])


def _doubled(executions: Sequence[Execution]) -> bool:
    """Whether any execution began before the previous execution ended, or after a previous success."""
    return any(
        later.started_at_ms < earlier.ended_at_ms or earlier.succeeded for earlier, later in pairwise(executions)
    )
