"""Computes the findings of a verification, one for each guarantee, from the executions of its tasks."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING

from duetime_client.plurals import counted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from duetime_client.verification.verification_plan import Limits

TERMINAL = frozenset({"succeeded", "failed", "cancelled", "rolled_back"})
_SHOWN = 3


class Verdict(StrEnum):
    """Whether the deployment kept a guarantee."""

    PASSED = "passed"
    FAILED = "failed"
    MEASURED = "measured"
    """The finding is a measured figure for which there is no guarantee."""
    UNMEASURED = "not measured"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of a verification for one guarantee.

    Attributes:
        figure: the measured value, as text.
        guaranteed: the limit.
        values: the measured values for programs.
    """

    guarantee: str
    verdict: Verdict
    figure: str
    guaranteed: str = ""
    values: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Execution:
    """A task at the end of the verification. Times are in milliseconds since 1970.

    Attributes:
        expected: the expected last state.
        attempts: the number of attempts.
        expected_attempts: the expected number of attempts.
        started_ms, ended_ms: start and end of the last attempt, by the clock of the process that ran it; `None` if
            unknown.
    """

    task_id: str
    due_ms: int
    state: str
    expected: str = "succeeded"
    attempts: int = 0
    expected_attempts: int = 1
    started_ms: int | None = None
    ended_ms: int | None = None


def unmeasured(guarantee: str, why: str) -> Finding:
    """Return a finding for a guarantee that this verification did not check."""
    return Finding(guarantee, Verdict.UNMEASURED, why)


def judged(guarantee: str, wrong: Collection[str], of: int, what: str, guaranteed: str = "none") -> Finding:
    """Return a finding for a guarantee about each of several items.

    Args:
        guarantee: the guarantee's name.
        wrong: the items that violate the guarantee.
        of: the number of items.
        what: the noun for violating items.
        guaranteed: the limit.
    """
    if not of:
        return unmeasured(guarantee, "nothing to check")
    shown = ", ".join(sorted(wrong)[:_SHOWN])
    more = f", and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
    figure = f"{len(wrong)} of {of} {what}" + (f": {shown}{more}" if wrong else "")
    verdict = Verdict.FAILED if wrong else Verdict.PASSED
    return Finding(guarantee, verdict, figure, guaranteed, {"wrong": sorted(wrong), "of": of})


def lost(executions: Sequence[Execution]) -> Finding:
    """Check that no accepted task is lost."""
    wrong = [each.task_id for each in executions if each.state not in TERMINAL]
    return judged("no accepted task is lost", wrong, len(executions), "without an outcome")


def wrong_outcomes(executions: Sequence[Execution]) -> Finding:
    """Check that each task has the outcome expected from its target's responses."""
    ended = [each for each in executions if each.state in TERMINAL]
    wrong = [f"{each.task_id} ({each.state})" for each in ended if each.state != each.expected]
    return judged("each task has its one outcome", wrong, len(ended), "ended otherwise")


def repeated(executions: Sequence[Execution]) -> Finding:
    """Check that no task has more attempts than expected."""
    wrong = [f"{each.task_id} ({each.attempts})" for each in executions if each.attempts > each.expected_attempts]
    return judged("no task runs twice", wrong, len(executions), "with more attempts than failures explain")


def early(executions: Sequence[Execution]) -> Finding:
    """Check that no task starts before its due time, by the clock of the process that runs the task."""
    started = [(each, each.started_ms - each.due_ms) for each in executions if each.started_ms is not None]
    wrong = [f"{each.task_id} ({-late} ms)" for each, late in started if late < 0]
    return judged("no task starts early", wrong, len(started), "early")


def on_time(guarantee: str, executions: Sequence[Execution], limits: Limits) -> Finding:
    """Check how late tasks start against the limits."""
    late = sorted(float(each.started_ms - each.due_ms) for each in executions if each.started_ms is not None)
    if not late:
        return unmeasured(guarantee, "no task has run")
    values = {"p50_ms": _percentile(late, 50), "p99_ms": _percentile(late, 99), "most_ms": late[-1]}
    is_passed = all(value <= getattr(limits, name) for name, value in values.items())
    figure = "p50 {p50_ms:.0f} ms, p99 {p99_ms:.0f} ms, at most {most_ms:.0f} ms".format(**values)
    guaranteed = f"{limits.p50_ms:.0f}, {limits.p99_ms:.0f}, {limits.most_ms:.0f} ms"
    return Finding(
        guarantee, Verdict.PASSED if is_passed else Verdict.FAILED, figure, guaranteed, {**values, "of": len(late)}
    )


def _percentile(ranked: Sequence[float], percent: int) -> float:
    """The percentile by nearest rank; the result is always a measured value."""
    return ranked[max(0, -(-len(ranked) * percent // 100) - 1)]


def cancelled(executions: Sequence[Execution]) -> Finding:
    """Check that a task that is cancelled before its due time does not run."""
    wrong = [each.task_id for each in executions if each.attempts or each.state != "cancelled"]
    return judged("a cancelled task does not run", wrong, len(executions), "ran, or not cancelled")


def retried(executions: Sequence[Execution]) -> Finding:
    """Check that a failed attempt is retried until the task succeeds."""
    wrong = [
        f"{each.task_id} ({each.attempts})"
        for each in executions
        if (each.state, each.attempts) != (each.expected, each.expected_attempts)
    ]
    return judged("a failed attempt is retried", wrong, len(executions), "without success after their failures")


def exclusive(executions: Sequence[Execution]) -> Finding:
    """Check that no two tasks that need the same lock run at the same time."""
    spans = sorted((each.started_ms, each.ended_ms) for each in executions if each.started_ms and each.ended_ms)
    wrong = [f"by {end - start} ms" for (_, end), (start, _) in pairwise(spans) if start < end]
    return judged("a lock has one holder", wrong, len(spans), "overlapping")


def in_order(executions: Mapping[str, Execution], edges: Iterable[tuple[str, str]]) -> Finding:
    """Check that no node of a topology starts before its parents have ended.

    Args:
        executions: the nodes' executions, by node key.
        edges: the dependencies, as pairs of parent and child.
    """
    edges = list(edges)
    wrong = [f"{parent} → {child}" for parent, child in edges if not _follows(executions, parent, child)]
    return judged("a topology runs in order", wrong, len(edges), "dependencies violated")


def _follows(executions: Mapping[str, Execution], parent: str, child: str) -> bool:
    ended, started = executions[parent].ended_ms, executions[child].started_ms
    return ended is not None and started is not None and ended <= started


def recurring(expected_ms: Collection[int], executions: Sequence[Execution]) -> Finding:
    """Check that each occurrence of a schedule runs exactly once, and that no other task runs."""
    ran = Counter(each.due_ms for each in executions if each.state == "succeeded")
    wrong = [f"{at} missed" for at in set(expected_ms) - ran.keys()]
    wrong += [f"{at} not of the schedule" for at in ran.keys() - set(expected_ms)]
    wrong += [f"{at} twice" for at, count in ran.items() if count > 1]
    return judged(
        "each occurrence of a schedule runs once", wrong, len(expected_ms), "missed, twice, or at another time"
    )


def pulled(ids: Collection[str], seen: Mapping[str, int]) -> Finding:
    """Check that this machine leased each task of a pulled type exactly once."""
    wrong = [f"{each} ({seen.get(each, 0)})" for each in ids if seen.get(each, 0) != 1]
    return judged("a pulled task is leased once", wrong, len(ids), "not leased once")


def idempotent(ids: Sequence[str], other_status: int) -> Finding:
    """Check that requests with the same key and body create one task, and that another body is rejected."""
    wrong = [] if len(set(ids)) == 1 else [f"{len(set(ids))} tasks"]
    wrong += [] if other_status == _REJECTED else [f"another body was answered with {other_status}"]
    return judged("an idempotency key creates one task", wrong, len(ids), "wrong responses")


_REJECTED = 422


def cold_starts(firsts: Sequence[bool], processes: Collection[str]) -> Finding:
    """Count the tasks that were the first task of their process; there is no guarantee for the number."""
    all_processes = counted(len(processes), "process", "processes")
    figure = f"{sum(firsts)} of {len(firsts)} tasks were the first of a process, {all_processes}"
    values = {"first": sum(firsts), "of": len(firsts), "processes": len(processes)}
    return Finding("cold starts", Verdict.MEASURED, figure, "", values)


def dollars(cost: float, attempts: int, estimate: float) -> Finding:
    """Report the cost of the attempts, as estimated by the API."""
    figure = f"${cost:.6f} for {counted(attempts, 'attempt')}, estimated by the API; without requests, logs and ticks"
    guaranteed = f"${estimate:.2f} estimated in total"
    return Finding("cost", Verdict.MEASURED, figure, guaranteed, {"dollars": cost, "estimate": estimate})
