"""What a verification found out: one line for each promise, judged from what became of its tasks."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from duetime_client.verification.plan import Limits

TERMINAL = frozenset({"succeeded", "failed", "cancelled", "rolled_back"})
_SHOWN = 3


class Verdict(StrEnum):
    """Whether a promise was kept."""

    KEPT = "kept"
    BROKEN = "broken"
    MEASURED = "measured"
    """A figure of which nothing is promised."""
    UNMEASURED = "not measured"


@dataclass(frozen=True, slots=True)
class Finding:
    """What was found out about one promise.

    Attributes:
        figure: in words.
        promised: what it is held against.
        values: the same for a program.
    """

    promise: str
    verdict: Verdict
    figure: str
    promised: str = ""
    values: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Execution:
    """One task of a verification, as it stood at the end. Times are in milliseconds since 1970.

    Attributes:
        expected: the state that it should have ended in.
        attempts: how many there were, by its attempt history.
        expected_attempts: how many there should have been.
        started_ms, ended_ms: of its last attempt, by the clock of the process that ran it; `None` if that is not known.
    """

    task_id: str
    due_ms: int
    state: str
    expected: str = "succeeded"
    attempts: int = 0
    expected_attempts: int = 1
    started_ms: int | None = None
    ended_ms: int | None = None


def unmeasured(promise: str, why: str) -> Finding:
    """A promise that this verification says nothing about."""
    return Finding(promise, Verdict.UNMEASURED, why)


def judged(promise: str, wrong: Collection[str], of: int, what: str, promised: str = "none") -> Finding:
    """A promise that holds if it holds for each single thing.

    Args:
        promise: which.
        wrong: for which it does not, by id or in words.
        of: how many were looked at.
        what: those that are wrong are called so.
        promised: what it is held against.
    """
    if not of:
        return unmeasured(promise, "nothing was looked at")
    shown = ", ".join(sorted(wrong)[:_SHOWN])
    more = f", and {len(wrong) - _SHOWN} more" if len(wrong) > _SHOWN else ""
    figure = f"{len(wrong)} of {of} {what}" + (f": {shown}{more}" if wrong else "")
    verdict = Verdict.BROKEN if wrong else Verdict.KEPT
    return Finding(promise, verdict, figure, promised, {"wrong": sorted(wrong), "of": of})


def lost(executions: Sequence[Execution]) -> Finding:
    """Accepted means never lost."""
    wrong = [each.task_id for each in executions if each.state not in TERMINAL]
    return judged("no accepted task is lost", wrong, len(executions), "without an outcome")


def amiss(executions: Sequence[Execution]) -> Finding:
    """Each task has the outcome that its target's answers ask for."""
    ended = [each for each in executions if each.state in TERMINAL]
    wrong = [f"{each.task_id} ({each.state})" for each in ended if each.state != each.expected]
    return judged("each task has its one outcome", wrong, len(ended), "ended otherwise")


def doubled(executions: Sequence[Execution]) -> Finding:
    """No attempt is made but the first and those that a failure asks for."""
    wrong = [f"{each.task_id} ({each.attempts})" for each in executions if each.attempts > each.expected_attempts]
    return judged("no task runs twice", wrong, len(executions), "with more attempts than failures ask for")


def early(executions: Sequence[Execution]) -> Finding:
    """No task starts before it is due, by the clock of the process that runs it."""
    started = [(each, each.started_ms - each.due_ms) for each in executions if each.started_ms is not None]
    wrong = [f"{each.task_id} ({-late} ms)" for each, late in started if late < 0]
    return judged("no task starts early", wrong, len(started), "early")


def on_time(promise: str, executions: Sequence[Execution], limits: Limits) -> Finding:
    """How late tasks start."""
    late = sorted(float(each.started_ms - each.due_ms) for each in executions if each.started_ms is not None)
    if not late:
        return unmeasured(promise, "no task has run")
    values = {"p50_ms": _percentile(late, 50), "p99_ms": _percentile(late, 99), "most_ms": late[-1]}
    is_kept = all(value <= getattr(limits, name) for name, value in values.items())
    figure = "p50 {p50_ms:.0f} ms, p99 {p99_ms:.0f} ms, at most {most_ms:.0f} ms".format(**values)
    promised = f"{limits.p50_ms:.0f}, {limits.p99_ms:.0f}, {limits.most_ms:.0f} ms"
    return Finding(promise, Verdict.KEPT if is_kept else Verdict.BROKEN, figure, promised, {**values, "of": len(late)})


def _percentile(ranked: Sequence[float], percent: int) -> float:
    """By nearest rank, so that it is a value that was measured."""
    return ranked[max(0, -(-len(ranked) * percent // 100) - 1)]


def cancelled(executions: Sequence[Execution]) -> Finding:
    """What was taken back before its time does not run."""
    wrong = [each.task_id for each in executions if each.attempts or each.state != "cancelled"]
    return judged("a cancelled task does not run", wrong, len(executions), "ran, or not cancelled")


def retried(executions: Sequence[Execution]) -> Finding:
    """A failure is tried again, as often as it takes."""
    wrong = [
        f"{each.task_id} ({each.attempts})"
        for each in executions
        if (each.state, each.attempts) != (each.expected, each.expected_attempts)
    ]
    return judged("a failed attempt is tried again", wrong, len(executions), "without success after their failures")


def exclusive(executions: Sequence[Execution]) -> Finding:
    """Of the tasks that name one lock, no two run at once."""
    spans = sorted((each.started_ms, each.ended_ms) for each in executions if each.started_ms and each.ended_ms)
    wrong = [f"by {end - start} ms" for (_, end), (start, _) in pairwise(spans) if start < end]
    return judged("a lock has one holder", wrong, len(spans), "overlapping")


def in_order(executions: Mapping[str, Execution], edges: Iterable[tuple[str, str]]) -> Finding:
    """No node of a topology starts before its parents have ended.

    Args:
        executions: by the nodes' keys.
        edges: parent and child.
    """
    edges = list(edges)
    wrong = [f"{parent} → {child}" for parent, child in edges if not _follows(executions, parent, child)]
    return judged("a topology keeps its order", wrong, len(edges), "dependencies not kept")


def _follows(executions: Mapping[str, Execution], parent: str, child: str) -> bool:
    ended, started = executions[parent].ended_ms, executions[child].started_ms
    return ended is not None and started is not None and ended <= started


def recurring(expected_ms: Collection[int], executions: Sequence[Execution]) -> Finding:
    """Each time of a schedule has run, and no other, and each once."""
    ran = Counter(each.due_ms for each in executions if each.state == "succeeded")
    wrong = [f"{at} missed" for at in set(expected_ms) - ran.keys()]
    wrong += [f"{at} not of the schedule" for at in ran.keys() - set(expected_ms)]
    wrong += [f"{at} twice" for at, count in ran.items() if count > 1]
    return judged(
        "each occurrence of a schedule runs once", wrong, len(expected_ms), "missed, twice, or at another time"
    )


def pulled(ids: Collection[str], seen: Mapping[str, int]) -> Finding:
    """Each task of a pulled type is leased once, as counted by the worker that leases them: this machine."""
    wrong = [f"{each} ({seen.get(each, 0)})" for each in ids if seen.get(each, 0) != 1]
    return judged("a pulled task is handed out once", wrong, len(ids), "not leased once")


def idempotent(ids: Sequence[str], other_status: int) -> Finding:
    """The same key and body create one task, whoever comes first; another body is refused."""
    wrong = [] if len(set(ids)) == 1 else [f"{len(set(ids))} tasks"]
    wrong += [] if other_status == _REFUSED else [f"another body was answered {other_status}"]
    return judged("an idempotency key creates one task", wrong, len(ids), "answers that are wrong")


_REFUSED = 422


def cold_starts(firsts: Sequence[bool], processes: Collection[str]) -> Finding:
    """How many of the tasks were the first of their process; nothing is promised of it."""
    figure = f"{sum(firsts)} of {len(firsts)} tasks were the first of a process, {len(processes)} processes"
    values = {"first": sum(firsts), "of": len(firsts), "processes": len(processes)}
    return Finding("cold starts", Verdict.MEASURED, figure, "", values)


def dollars(cost: float, attempts: int, estimate: float) -> Finding:
    """What the attempts have cost, as the API reckons it."""
    figure = f"${cost:.6f} for {attempts} attempts, as the API reckons it; without requests, logs and ticks"
    promised = f"${estimate:.2f} estimated for all"
    return Finding("cost", Verdict.MEASURED, figure, promised, {"dollars": cost, "estimate": estimate})
