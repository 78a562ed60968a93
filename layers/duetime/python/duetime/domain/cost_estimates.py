"""Derives workloads from requests, so that the cost of the requested tasks can be estimated.

The estimates assume that the deployment has no other load, and that attempts have no result and take no time, unless a
node has an expected duration. `docs/reference/costs.md` lists the units counted here, with their tests.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import TYPE_CHECKING

from duetime.domain.ids import TaskId
from duetime.domain.limits import INLINE_CONTENT_BYTES, INLINE_EVENT_BYTES
from duetime.domain.operating_parameters import EDGES_PER_GROUP
from duetime.domain.schedules.definition import Overlap
from duetime.domain.schedules.forecast import planned_times
from duetime.domain.schedules.occurrences import count_between
from duetime.domain.tasks.attempt_records import AttemptOutcome
from duetime.domain.tasks.attempt_run import Run as AttemptRun
from duetime.domain.tasks.aws_jobs import is_job
from duetime.domain.tasks.creation import new_task
from duetime.domain.tasks.states import State
from duetime.domain.tasks.targets import (
    ApprovalTarget,
    EventTarget,
    HttpTarget,
    Phase,
    PullTarget,
    TopologyTarget,
    outlives_workers,
)
from duetime.domain.tasks.task import Content, ContentPlace
from duetime.domain.tasks.task_options import unique_of
from duetime.domain.times import HOUR, SECOND
from duetime.domain.topologies.graph import Graph
from duetime_common.cost_estimate import LONGEST_SECONDS, MONTH_DAYS, MONTH_SECONDS, TASK_WRITES, Workload
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from duetime.domain.schedules.schedule import Schedule
    from duetime.domain.tasks.task import Task
    from duetime.domain.tasks.type_defaults import TaskSpec
    from duetime.domain.times import Millis
    from duetime.domain.topologies.graph import Node

MAP_ITEMS = "the items of a map besides the first"
NODES = "the nodes of a topology whose graph is in a payload or a definition"
_KILOBYTE = 1_024
_UNIQUE, _LOCK, _RATE, _LATE_NOTICE, _PREPARE, _JOB, _APPROVAL, _PULL_EXPIRY, _PARENT = 4, 2, 1, 1, 2, 2, 5, 1, 1
"""Additional write units of a task, by feature."""
_EVENT = 6
"""Additional write units of a task that waits for an event."""
_MEMBER = 2
"""Additional write units of a group member: one for its item, and one for recording its end."""
_WAITING, _DEPENDENCY = 2, 3
"""Additional write units of a task with an `after`, and additional write units for each task in `after` that has not
ended."""
_ORDER = 5
"""Additional write units for an ordered key: for the number, place, turn, removal of the place, and end of
follow-ups."""
_CALLBACK = 1
"""Additional write units of a callback, which is a separate task."""
_LIKE_RANDOM = 0x9E37, 0x79B97F4A7C15F39C
_TOPOLOGY = 12 - TASK_WRITES
"""Additional write units of a topology's own task, which has an execution and a watchdog."""
_NODE, _WAITING_NODE, _LAST_NODE, _INNER_TOPOLOGY = 2, 1, 1, 1
"""Additional write units of every node, of a node with parents, of a node without children, and of a sub-topology."""
_TRANSITIONS = 6
"""State transitions of a topology; each node without children adds one more transition."""
_EXPANSION = 2
_EXPANSIONS_A_MONTH = MONTH_SECONDS * SECOND // HOUR
"""A schedule with occurrences is expanded once an hour."""
_OVERLAP = {Overlap.ALLOW_ALL: 0, Overlap.SKIP: 1, Overlap.REPLACE_OTHER: 1}
_OTHER_OVERLAP = 3
_PAUSE_ON_FAILURE = 1
"""Additional write units of an occurrence's run."""


@frozen
class Circumstances:
    """The deployment and time for which costs are estimated.

    Attributes:
        owner: owner of the tasks.
        now: the time.
        soon: the API sends messages for tasks that are due within this many milliseconds; for later tasks, the trigger
            sends messages.
        pulled_types: types that pull workers run.
        stored_size: function that returns the compressed size of a payload, in bytes.
        outcome_event: function that returns the event of an ended task's callback.
        workload: workload of a task without extra features, with the deployment's precision, summary, traces and
            region.
    """

    owner: str
    now: Millis
    soon: Millis
    pulled_types: Collection[str]
    stored_size: Callable[[bytes], int]
    outcome_event: Callable[[Task], bytes]
    workload: Workload


@frozen
class RequestWorkload:
    """The workload of a request's tasks.

    Attributes:
        parts: one workload for each group of similar tasks.
        region: region of the price table.
        days: the period in days; `None` for all tasks of a request.
        left_out: descriptions of the parts of the request that are not estimated.
    """

    parts: Sequence[Workload]
    region: str
    days: int | None = None
    left_out: Sequence[str] = ()


@frozen
class TaskWorkloads:
    """Derives workloads of tasks in a deployment."""

    circumstances: Circumstances

    def of_tasks(self, specs: Sequence[TaskSpec], *, has_key: bool) -> RequestWorkload:
        """Workload of the tasks in one request, grouped by due time."""
        base = replace(self.circumstances.workload, keys=has_key, per_request=len(specs) or 1)
        # Only tasks with the same due time can share a worker.
        alike = Counter((self._of_task(spec, base), self._due_at(spec)) for spec in specs)
        parts = [_many(each, count, together=count) for (each, _), count in alike.items()]
        inner = [NODES for spec in specs if isinstance(spec.target, TopologyTarget)]
        return self._found([*parts, *self._callbacks(specs)], inner[:1])

    def of_topology(self, spec: TaskSpec, graph: Graph, *, has_key: bool) -> RequestWorkload:
        """Workload of a topology and its nodes."""
        own = self._of_attempt(spec, replace(self.circumstances.workload, keys=has_key))
        nodes = Counter(self._of_graph(graph))
        specs = [spec, *(node.spec for node in _all_nodes(graph))]
        parts = [_of_run(own, graph), *(_many(each, count) for each, count in nodes.items()), *self._callbacks(specs)]
        return self._found(parts, _left_out(graph))

    def of_schedule(self, schedule: Schedule) -> RequestWorkload:
        """Workload of a schedule's occurrences in the next month, ignoring calendars."""
        spec, count = schedule.spec, _planned(schedule, self.circumstances.now)
        if not count:
            return self._found([], days=MONTH_DAYS)
        run = self._of_task(spec.task, replace(self.circumstances.workload, per_request=0))
        expansions = min(count, _EXPANSIONS_A_MONTH) * _EXPANSION / count
        extra = expansions + _OVERLAP.get(spec.overlap, _OTHER_OVERLAP) + _PAUSE_ON_FAILURE * spec.pause_on_failure
        runs = _many(replace(run, ahead=True, extra_writes=run.extra_writes + extra), count)
        inner = [NODES] if isinstance(spec.task.target, TopologyTarget) else []
        return self._found([runs, *(_many(each, count) for each in self._callbacks([spec.task]))], inner, MONTH_DAYS)

    def _found(
        self, parts: Sequence[Workload], left_out: Sequence[str] = (), days: int | None = None
    ) -> RequestWorkload:
        return RequestWorkload(parts, self.circumstances.workload.region, days, left_out)

    def _of_task(self, spec: TaskSpec, base: Workload) -> Workload:
        """Workload of one task; nodes of a topology are not included."""
        found = self._of_attempt(spec, base)
        return _of_run(found, None) if isinstance(spec.target, TopologyTarget) else found

    def _of_attempt(self, spec: TaskSpec, base: Workload) -> Workload:
        """Workload of one task, apart from what depends on its content."""
        pulled = isinstance(spec.target, PullTarget) or (
            spec.target is None and spec.type in self.circumstances.pulled_types
        )
        is_ahead = self._due_at(spec) - self.circumstances.now > self.circumstances.soon
        return replace(base, pulled=pulled, ahead=is_ahead, extra_writes=self._extra_writes(spec, pulled=pulled))

    def _extra_writes(self, spec: TaskSpec, *, pulled: bool) -> int:
        """Additional write units of a task's features."""
        target, notice = spec.target, spec.notify_on
        found = _UNIQUE * (unique_of(spec.unique, spec.debounce) is not None)
        found += _LOCK * len(spec.all_locks) + _RATE * (spec.rate is not None)
        found += _ORDER * (spec.order is not None)
        found += _PARENT * (spec.parent_task_id is not None) + _MEMBER * (spec.group is not None)
        if spec.after is not None:
            found += _WAITING + _DEPENDENCY * len(spec.after.on)
        if notice is not None:
            is_checked = notice.running_seconds is not None and (pulled or outlives_workers(target))
            found += _LATE_NOTICE * ((notice.late_seconds is not None) + is_checked)
        found += _PULL_EXPIRY * (pulled and spec.expires_seconds is not None)
        found += _PREPARE * (isinstance(target, HttpTarget) and Phase.PREPARE in target.phases)
        found += _JOB * (target is not None and is_job(target)) + _APPROVAL * isinstance(target, ApprovalTarget)
        found += _EVENT * isinstance(target, EventTarget)
        return found + self._payload_writes(spec.payload, INLINE_CONTENT_BYTES)

    def _payload_writes(self, payload: bytes, inline: int) -> int:
        """Write units of a payload: 0 if stored in the record, otherwise three per KB plus one when the task ends."""
        size = self.circumstances.stored_size(payload) if len(payload) > inline else 0
        return 3 * -(-size // _KILOBYTE) + 1 if size > inline else 0

    def _of_graph(self, graph: Graph) -> Iterator[Workload]:
        """Workloads of all nodes of a graph, including nested nodes."""
        awaited = {parent for node in graph.nodes for parent in node.depends_on}
        base = replace(self.circumstances.workload, per_request=0)
        for node in graph.nodes:
            is_last = node.key not in awaited
            task = self._of_attempt(
                node.spec, replace(base, seconds=min(node.expected_seconds or 0.0, LONGEST_SECONDS))
            )
            if not node.is_topology:
                extra = task.extra_writes + _NODE + _edge_writes(node) + _LAST_NODE * is_last
                yield replace(task, extra_writes=extra)
                continue
            extra = task.extra_writes + _INNER_TOPOLOGY + _edge_writes(node) + _LAST_NODE * is_last
            inner = _inner_graph(node)
            yield _of_run(replace(task, extra_writes=extra), inner)
            if inner is not None:
                yield from self._of_graph(inner)

    def _callbacks(self, specs: Iterable[TaskSpec]) -> list[Workload]:
        """Workloads of the callbacks, which are tasks that post outcomes."""
        counts = Counter(self._event_writes(spec) for spec in specs if spec.callback_url is not None)
        one = replace(self.circumstances.workload, per_request=0, ahead=False)
        return [_many(replace(one, extra_writes=_CALLBACK + extra), count) for extra, count in counts.items()]

    def _event_writes(self, spec: TaskSpec) -> int:
        """Write units of a callback's event, if the task succeeds at once without a result."""
        event = self.circumstances.outcome_event(_succeeded(spec, self.circumstances.owner, self._due_at(spec)))
        return self._payload_writes(event, INLINE_EVENT_BYTES)

    def _due_at(self, spec: TaskSpec) -> Millis:
        due = self.circumstances.now + (spec.delay or 0) if spec.due_at is None else spec.due_at
        return max(due, self.circumstances.now)


def _planned(schedule: Schedule, now: Millis) -> int:
    """How many times a schedule that is created now will run in a month."""
    end, most = now + MONTH_SECONDS * SECOND, schedule.spec.remaining_runs
    times = planned_times(replace(schedule, remaining_runs=most), now, end)
    count = count_between(schedule, now - 1, end - 1) if times is None else len(times)
    return count if most is None else min(count, most)


def _succeeded(spec: TaskSpec, owner: str, at: Millis) -> Task:
    """The record of a hypothetical task that succeeded as soon as it was due."""
    # The id needs random-looking digits, because a real id's random digits cannot be compressed.
    task_id = TaskId.of(at, *_LIKE_RANDOM)
    made = new_task(task_id, spec, owner, at, at, Content(ContentPlace.RECORD, "", b""))
    ended = replace(made, state=State.SUCCEEDED, attempt=1, fence=made.fence + 1, version=3, started_at=at)
    return replace(ended, attempt_history=(AttemptRun(ended, at, at).line(AttemptOutcome.SUCCEEDED),))


def _many(one: Workload, count: int, together: int = 1) -> Workload:
    return replace(one, tasks=count, together=together)


def _of_run(own: Workload, graph: Graph | None) -> Workload:
    """Workload of a topology's own task, with its state transitions."""
    awaited = set() if graph is None else {parent for node in graph.nodes for parent in node.depends_on}
    last = 0 if graph is None else len(graph.nodes) - len(awaited)
    return replace(own, extra_writes=own.extra_writes + _TOPOLOGY, transitions=_TRANSITIONS + last)


def _edge_writes(node: Node) -> int:
    parents = len(node.depends_on)
    return _WAITING_NODE * bool(parents) + (-(-parents // EDGES_PER_GROUP) if parents > EDGES_PER_GROUP else 0)


def _inner_graph(node: Node) -> Graph | None:
    """The graph of a node that is a topology; a map counts as one item.

    `None` if the request does not contain the graph.
    """
    return node.subgraph if node.map is None else Graph((replace(node, depends_on=(), map=None),))


def _all_nodes(graph: Graph) -> Iterator[Node]:
    """The nodes of a graph, including nested nodes."""
    for node in graph.nodes:
        yield node
        if node.subgraph is not None:
            yield from _all_nodes(node.subgraph)


def _left_out(graph: Graph) -> list[str]:
    nodes = list(_all_nodes(graph))
    found = {
        MAP_ITEMS: any(node.map is not None for node in nodes),
        NODES: any(isinstance(node.spec.target, TopologyTarget) and node.subgraph is None for node in nodes),
    }
    return [words for words, is_there in found.items() if is_there]
