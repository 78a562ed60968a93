"""Tests that each number in a schedule, task, topology, switch or lease has an effect at both ends of its range."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, replace
from io import BytesIO
from itertools import islice
from typing import TYPE_CHECKING, Any

import pytest
from urllib3.response import HTTPResponse

from duetime.adapters.targets.http_batches import run_in_batch
from duetime.adapters.targets.http_client import kept_response
from duetime.adapters.targets.http_target import HttpRunner
from duetime.contract.http.request_json import document_of
from duetime.contract.leases import LeaseHeartbeat, LeaseRequest
from duetime.contract.schedules.bodies import (
    BackfillCreate,
    ScheduleCreate,
    SchedulePatch,
    TaskTemplate,
    TaskTemplateUpdate,
)
from duetime.contract.schedules.calendars import CalendarFields
from duetime.contract.switches import SwitchPut, switch_of
from duetime.contract.tasks.bodies import TaskCreate, TaskPatch
from duetime.contract.tasks.decoding import task_spec
from duetime.contract.tasks.queries import TaskQuery
from duetime.contract.topologies.bodies import TopologyCreate, TopologyNode
from duetime.contract.topologies.decoding import graph_of
from duetime.domain.dispatch.enqueue_plan import LateTimer, enqueue_plan, late_timer, long_run_timer
from duetime.domain.ids import TaskId
from duetime.domain.limits import MAX_ATTEMPTS, MAX_RESULT_BYTES
from duetime.domain.locks import HandOver, Lock, Waiter, claims_of
from duetime.domain.operating_parameters import (
    LEASE_RETURN_MARGIN,
    LONGEST_LOCK_HOLD,
    MAX_CLOCK_DIFFERENCE,
    TOPOLOGY_MARGIN,
)
from duetime.domain.rates import MICROS, STARTS, Join, RateState, Start, StartRequest, Wait, pace_of, parts_of
from duetime.domain.schedules.backfill import requested, steps
from duetime.domain.schedules.expansion import catch_up, expand
from duetime.domain.schedules.expectations import OLDEST_WINDOWS, Window, next_window
from duetime.domain.schedules.occurrences import following, judged
from duetime.domain.schedules.run_history import ExpectationState
from duetime.domain.schedules.runs import with_usual_duration
from duetime.domain.schedules.schedule import next_permanent_run
from duetime.domain.schedules.timings import parse_timing
from duetime.domain.switches import Switch, Switches, SwitchKey, SwitchScope
from duetime.domain.tasks import event_waits
from duetime.domain.tasks.approvals import waiting_time
from duetime.domain.tasks.attempt_records import (
    LOCK_WAIT_EXPIRED,
    RETRY_DURATION_EXPIRED,
    AttemptOutcome,
    AttemptRecord,
)
from duetime.domain.tasks.attempt_results import Expired, Failed, Postponed, Succeeded
from duetime.domain.tasks.attempt_run import checked_by, expired, lock_wait
from duetime.domain.tasks.creation import Identity, debounced_due, due_of, new_id, new_task
from duetime.domain.tasks.notices import lateness_notice, timed_notice
from duetime.domain.tasks.poll_interval import SHORTEST, poll_interval
from duetime.domain.tasks.states import State
from duetime.domain.tasks.targets import EventTarget, TopologyTarget
from duetime.domain.tasks.task import Progress
from duetime.domain.tasks.task_options import Debounce, NotifyOn, Priority
from duetime.domain.tasks.wait_reasons import APPROVAL_AWAITED
from duetime.domain.tasks.waits import waits_with
from duetime.domain.times import DAY, HOUR, MINUTE, SECOND
from duetime.domain.topologies.graph import outline_of
from duetime.domain.topologies.maps import NodeMap, graph_of_map, map_payload
from duetime.domain.topologies.run_progress import critical_path, is_stopped
from duetime.domain.topologies.watchdog_times import deferred_until, reminders
from tests.adapters.targets.test_batch_handlers import Together
from tests.adapters.targets.test_http_batches import Answering
from tests.adapters.targets.works import work
from tests.domain.factories import PAYLOAD
from tests.domain.factories import task as due_task
from tests.domain.schedules.times import at, changed, scheduled
from tests.domain.test_rates import applied
from tests.domain.topologies.graphs import FAILED, statuses
from tests.scenarios.test_pull_workers import Pulled
from tests.simulation.account import PULLED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from pydantic import BaseModel

    from duetime.adapters.targets.http_messages import Call, HttpResponse
    from duetime.domain.locks import LockClaim
    from duetime.domain.tasks.attempt_results import TargetEnding
    from duetime.domain.tasks.task import Task
    from duetime.domain.tasks.task_options import Rate

NOW = at("2027-01-01T00:00:30")
LOOK_AHEAD = MINUTE
NO_SETTINGS = frozenset({"target.topology.definition.version"})
"""Numbers without a maximum, because they refer to an object that may not exist."""


def bounded(model: type[BaseModel], *left_out: str) -> dict[str, tuple[float | None, float | None]]:
    """Return the legal range of each number in a request by name; a number within another field is `field.name`."""
    schema = model.model_json_schema()

    def walk(name: str, node: Mapping[str, Any]) -> Iterator[tuple[str, tuple[float | None, float | None]]]:
        if "$ref" in node:
            node = schema["$defs"][node["$ref"].rpartition("/")[2]]
        for part in node.get("anyOf", ()):
            yield from walk(name, part)
        for kind, part in node.get("discriminator", {}).get("mapping", {}).items():
            yield from walk(f"{name}.{kind}", {"$ref": part})
        if "items" in node:
            yield from walk(name, node["items"])
        if node.get("type") in {"integer", "number"}:
            yield name, (node.get("minimum"), node.get("maximum"))
        for inner, each in node.get("properties", {}).items():
            if inner not in left_out:
                yield from walk(f"{name}.{inner}" if name else inner, each)

    return dict(walk("", schema))


def _delays(name: str, seconds: int) -> None:
    """Check that no delay exceeds `seconds`, and that some delay exceeds a twentieth of it unless it is 0."""
    schedule = changed(scheduled("0 0 1 * *"), **{name: seconds})
    delays = [each.due_at - each.nominal for each in following(schedule, NOW, 24)]
    assert max(delays) <= seconds * SECOND
    assert (max(delays) > seconds * SECOND // 20) is bool(seconds)


def _catches_up(seconds: int) -> None:
    """Check that an occurrence that is `seconds` late runs, and that an occurrence one second later is missed."""
    schedule = changed(scheduled("0 0 1 1 *"), catch_up_seconds=seconds)
    missed = following(schedule, NOW, 1)[0].nominal
    assert catch_up(schedule, NOW, missed + seconds * SECOND).run == judged(schedule, missed)
    late = catch_up(schedule, NOW, missed + (seconds + 1) * SECOND)
    assert (late.run, late.missed) == (None, 1)


def _expects(seconds: int) -> None:
    """Check that the deadline is `seconds` after the latest success, regardless of when it was last checked."""
    spec = replace(scheduled("* * * * *").spec, expect_every_seconds=seconds)
    for now in (NOW, NOW + seconds * SECOND // 2, NOW + seconds * SECOND):
        found = next_window(spec, ExpectationState(NOW, NOW), now - OLDEST_WINDOWS)
        assert found == Window(NOW, NOW + seconds * SECOND, is_period=True)


def _is_usual(factor: float) -> None:
    """Check that a usual duration of ten seconds is multiplied by `factor`."""
    line = AttemptRecord(1, 1, "worker", NOW, 0, 10 * SECOND, AttemptOutcome.SUCCEEDED)
    run = replace(due_task(), state=State.SUCCEEDED, attempt_history=(line,))
    found = with_usual_duration(NotifyOn("https://example.org"), factor, 3 * [run])
    assert found is not None
    assert found.running_seconds == round(10 * factor)


def _remains(runs: int) -> None:
    """Check that exactly `runs` occurrences are placed."""
    schedule = replace(scheduled("* * * * * *"), remaining_runs=runs)
    found = expand(schedule, NOW, NOW + MINUTE)
    placed = min(runs, 60)
    assert (len(found.occurrences), found.remaining_runs) == (placed, runs - placed)


def _pauses(seconds: int) -> None:
    """Check that the next run is `seconds` after the end of the previous run."""
    schedule = replace(scheduled("* * * * *"), timing=parse_timing(permanent=seconds))
    assert next_permanent_run(schedule, NOW) == NOW + seconds * SECOND


def _fills(per_minute: int) -> None:
    """Check that a backfill has `per_minute` occurrences due each minute."""
    backfill = requested(NOW - DAY, NOW, per_minute, NOW)
    found = [each for each, _ in islice(steps(scheduled("* * * * * *"), backfill, 86_400), per_minute + 1)]
    assert (found[0].due_at, found[-1].due_at) == (NOW, NOW + MINUTE)


def task(**fields: Any) -> Task:  # noqa: ANN401 - JSON
    """Return the record of a task that is created now from a request with these fields."""
    spec = task_spec(document_of(json.dumps({"type": "report", **fields})))
    due = due_of(spec, NOW)
    return new_task(new_id(due, NOW, 0, 0), spec, "me", due, NOW, PAYLOAD)


def _is_due(seconds: float) -> None:
    """Check that the task's id and home minute match the due time, and that its payload is kept at least until then."""
    created = task(delay_seconds=seconds)
    due = NOW + int(seconds * SECOND)
    assert (created.due_at, created.next_at) == (due, due)
    assert TaskId.parse(str(created.id)).home == due
    assert not enqueue_plan(created.id, due, NOW, LOOK_AHEAD).timer
    assert Identity(created.id, due, NOW).expiry.at >= due + MINUTE


def _debounces(seconds: int) -> None:
    """Check that each creation with the key postpones the task by `seconds`, no matter when the first creation was."""
    debounce = task(debounce={"key": "k", "seconds": seconds}).debounce
    assert debounce == Debounce("k", seconds)
    for now in (NOW, NOW + seconds * SECOND // 2, NOW + seconds * SECOND):
        assert debounced_due(debounce, NOW, now) == now + seconds * SECOND


def _debounces_no_longer(seconds: int) -> None:
    """Check that the task is due `seconds` after the first creation, however late the latest creation is."""
    debounce = Debounce("k", seconds, seconds)
    for now in (NOW, NOW + seconds * SECOND // 2, NOW + seconds * SECOND):
        assert debounced_due(debounce, NOW, now) == NOW + seconds * SECOND


def _tries(attempts: int) -> None:
    """Check that a task has exactly this number of attempts, and that the wait grows until the last attempt."""
    policy = task(
        retry={"max_attempts": attempts, "initial_seconds": 1, "multiplier": 1.05, "max_seconds": 86_400}
    ).retry
    assert [policy.allows_after(attempt) for attempt in range(1, attempts + 1)] == [True] * (attempts - 1) + [False]
    assert [policy.bound(attempt) for attempt in range(1, attempts)] == [
        int(1.05**power * SECOND) for power in range(attempts - 1)
    ]


def _waits_between(name: str, value: float) -> None:
    """Check that the value determines the upper bound of each wait, from the first wait to the last."""
    retry = {"max_attempts": MAX_ATTEMPTS, "initial_seconds": 2, "multiplier": 3, "max_seconds": 86_400, name: value}
    policy = task(retry=retry).retry
    initial, multiplier, longest = retry["initial_seconds"], retry["multiplier"], retry["max_seconds"]
    for attempt in range(1, MAX_ATTEMPTS):
        assert policy.bound(attempt) == int(min(initial * multiplier ** (attempt - 1), longest) * SECOND)
        assert policy.wait(attempt, 0.5) == policy.bound(attempt) // 2


def _tries_no_longer(seconds: int) -> None:
    """Check that attempts can start until `seconds` after the first attempt, and that the task is checked then."""
    end = NOW + seconds * SECOND
    claimed = replace(
        task(retry={"max_duration_seconds": seconds}), state=State.RUNNING, started_at=NOW, run_at=end, attempt=2
    )
    assert expired(claimed, end) is None
    late = expired(claimed, end + 1)
    assert late is not None
    assert late.kind == RETRY_DURATION_EXPIRED
    assert checked_by(claimed, end + DAY) == end + 1


def _expires(seconds: int) -> None:
    """Check that the first attempt can start until `seconds` after the due time, and that the task is checked then."""
    end = NOW + HOUR + seconds * SECOND
    claimed = replace(
        task(delay_seconds=3600, expires_seconds=seconds), state=State.RUNNING, started_at=end, run_at=end
    )
    assert expired(claimed, end) is None
    assert expired(claimed, end + 1) is not None
    assert checked_by(claimed, end + DAY) == end + 1


def _shares(weight: int) -> None:
    """Check that tasks with a fair key are spread over `weight` message groups."""
    made = task(fair_key="customer-17", fair_weight=weight)
    assert len({replace(made, id=TaskId.of(NOW, 0, number)).fair_share for number in range(200)}) == weight


def _times_out(seconds: int) -> None:
    """Check that an attempt can take `seconds`, and that a lock can be held that long."""
    assert task(timeout_seconds=seconds).overdue_at(NOW) == NOW + seconds * SECOND
    assert seconds * SECOND <= LONGEST_LOCK_HOLD


def _notifies(seconds: int) -> None:
    """Check that a deferred attempt's lease lasts `seconds` and is then checked, and that a lock can be held longer."""
    claimed = task(notify_within_seconds=seconds)
    deadline = deferred_until(claimed, NOW)
    assert deadline == NOW + seconds * SECOND
    assert reminders(claimed, deadline, NOW, LOOK_AHEAD) == (deadline + LEASE_RETURN_MARGIN,)
    assert Lock.renewal_expires_at(NOW, deadline) >= NOW + LONGEST_LOCK_HOLD > deadline


def _holds(claim: LockClaim) -> None:
    """Check that `claim.limit` waiting tasks are admitted at once, and that more tasks keep waiting."""
    hand_over = HandOver(Lock(claim.name))
    for number in range(claim.limit + 2):
        record = due_task(id=TaskId.of(NOW, 0, number))
        hand_over = hand_over.admit(Waiter(NOW, record.id, 1), record, claim, NOW + MINUTE)
    assert (len(hand_over.admitted), len(hand_over.lock.holders), hand_over.is_full) == (claim.limit, claim.limit, True)


def _switch(**fields: Any) -> Switch:  # noqa: ANN401 - JSON
    return switch_of(SwitchKey(SwitchScope.TYPE, "report"), document_of(json.dumps(fields)))


def _caps(tasks: int) -> None:
    """Check that each of a switch's tasks needs a lock whose number of holders is the switch's limit."""
    switch = _switch(max_concurrent=tasks)
    (claim,) = Switches({switch.key: switch}).caps(task())
    assert claim.limit == tasks
    _holds(claim)


def _waits_for_a_lock_of_two(seconds: int) -> None:
    """Check that a task that waits for several locks observes each lock's separate time limit."""
    _waits_for_a_lock(seconds, locks=[{"key": "gpu"}, {"key": "db-17", "wait_seconds": seconds}])


def _waits_for_a_lock(seconds: int, **fields: Any) -> None:  # noqa: ANN401 - JSON
    """Check that a task fails `seconds` after it first waited for the lock, whatever else it waited for in between."""
    waiting = task(**(fields or {"lock": {"key": "db-17", "wait_seconds": seconds}}))
    for step in range(40):
        reason = "lock type/report" if step % 2 else "lock db-17"
        waiting = replace(waiting, waits=waits_with(waiting, reason, NOW + step * seconds * SECOND // 50))
    end = NOW + seconds * SECOND
    held = Postponed(end + DAY, "lock db-17")
    assert lock_wait(waiting, held, end - 1) == replace(held, until=end)
    late = lock_wait(waiting, held, end)
    assert isinstance(late, Expired)
    assert late.kind == LOCK_WAIT_EXPIRED


def _is_told_late(seconds: int) -> None:
    """Check that a task is late `seconds` after its due time, and that its timer is in a minute that is read later."""
    waiting = task(delay_seconds=3600, notify_on={"to": "https://example.org", "late_seconds": seconds})
    late = NOW + HOUR + seconds * SECOND
    timer = late_timer(waiting, NOW, LOOK_AHEAD)
    assert timer == LateTimer(waiting.id, "me", late, timer.at if timer else 0)
    assert timer is not None
    assert late < timer.at <= late + LOOK_AHEAD + 2 * MINUTE
    assert lateness_notice(waiting, late, late - 1) is None
    assert lateness_notice(waiting, late, late) is not None


def _is_told_long(seconds: int) -> None:
    """Check that an attempt is long `seconds` after its start, and that its timer is in a minute that is read later."""
    waiting = task(notify_on={"to": "https://example.org", "running_seconds": seconds})
    running = replace(waiting, state=State.RUNNING, run_at=NOW, fence=1, started_at=NOW)
    long = NOW + seconds * SECOND
    timer = long_run_timer(running, NOW, LOOK_AHEAD)
    assert timer is not None
    assert (timer.late_at, long < timer.at <= long + LOOK_AHEAD + 2 * MINUTE) == (long, True)
    assert timed_notice(running, long, long - 1) is None
    assert timed_notice(running, long, long) is not None
    assert timed_notice(replace(running, state=State.SUCCEEDED), long, long) is None


def _waits_for_an_approval(seconds: int) -> None:
    """Check that a task waits for an approval until `seconds` after its due time or, if this is later, its creation."""
    waiting = task(delay_seconds=3600, target={"kind": "approval", "timeout_seconds": seconds})
    end = NOW + HOUR + seconds * SECOND
    for now in (NOW + HOUR, end - 1):
        held = waiting_time(waiting, now)
        assert held is not None
        assert held.until == end
    assert waiting_time(waiting, end) is None
    was_due = task(due_at="2026-01-01T00:00:00Z", target={"kind": "approval", "timeout_seconds": seconds})
    assert waiting_time(was_due, NOW) == Postponed(NOW + seconds * SECOND, APPROVAL_AWAITED)


def _waits_for_an_event(seconds: int) -> None:
    """Check that a task waits for an event until `seconds` after its due time."""
    target = EventTarget("order.paid", "", seconds)
    waiting = task(delay_seconds=3600, target={"kind": "wait_for_event", "event": "a", "timeout_seconds": seconds})
    end = NOW + HOUR + seconds * SECOND
    for now in (NOW + HOUR, end - 1):
        held = event_waits.waiting_time(waiting, target, now)
        assert held is not None
        assert held.until == end
    assert event_waits.waiting_time(waiting, target, end) is None


def _looks_back(seconds: int) -> None:
    """Check that a signal counts if it was sent at most `seconds` before the task's creation."""
    waiting = task(target={"kind": "wait_for_event", "event": "a", "lookback_seconds": seconds})
    assert event_waits.first_signal_id(waiting).home == waiting.created_at - seconds * SECOND


@dataclass(frozen=True)
class Endpoint:
    """An HTTP endpoint that responds to each call with the same status and body."""

    status: int = 200
    body: bytes = b"null"

    def call(self, call: Call) -> HttpResponse:
        """Return the response, with its body cut to the needed size."""
        return kept_response(HTTPResponse(BytesIO(self.body), status=self.status, preload_content=False), call, (), NOW)


def _called(endpoint: Endpoint, **fields: Any) -> TargetEnding:  # noqa: ANN401 - JSON
    target: Any = task(target={"kind": "http", "url": "https://example.org", "method": "POST", **fields}).target
    return HttpRunner(endpoint).run(target, replace(work(url=target.url)))


def _succeeds(status: int) -> None:
    """Check that `status` is a success and that the next status is a failure."""
    assert isinstance(_called(Endpoint(status), success=[status]), Succeeded)
    assert isinstance(_called(Endpoint(status + 1), success=[status]), Failed)


def _keeps(size: int) -> None:
    """Check that a body is cut off at `size`, or where the result would be too large."""
    response = {"max_bytes": size, "when_larger": "truncate"}
    kept = _called(Endpoint(body=b"x" * (size + 10)), response=response)
    assert kept == Succeeded(b'"' + b"x" * min(size, MAX_RESULT_BYTES - 2) + b'"')


def _shares_calls(**batch: float) -> None:
    """Check that the batch settings limit the tasks in a call and the first task's wait for others."""
    target: Any = task(target={"kind": "http", "url": "https://example.org", "batch": batch}).target
    attempt, groups = replace(work(url="https://example.org", seconds=840), seconds=840.0), Together(1)
    run_in_batch(Answering(), target, replace(attempt, batch_groups=lambda: groups))
    assert groups.limits == [(batch.get("max_size", 100), batch.get("max_wait_seconds", 1) * SECOND)]


def _starts(rate: Rate) -> None:
    """Check that a window under constant demand has `limit` plus `burst` starts, or less than a twentieth fewer.

    Each part's item is stored as long as any start in the part is counted.
    """
    begun = sum(_begun(rate, part) for part in range(parts_of(rate)))
    assert math.ceil(rate.limit * 20 / 21) + rate.burst <= begun <= rate.limit + rate.burst


def _begun(rate: Rate, part: int) -> int:
    """Return how many attempts start in a part's first window if each is requested right after the previous attempt."""
    state, pace, now, count = RateState(), pace_of(rate, part), NOW * MICROS, 0
    place: int | None = None
    while True:
        request = StartRequest(pace, Priority.NORMAL, now, place)
        step = request.next_step(state, is_fresh=True)
        if isinstance(step, Wait):
            now = step.until * MICROS
            continue
        after = applied(state, step.update)
        assert after is not None
        assert step.update.needed_until * MICROS >= after.of(STARTS)
        state = after
        if isinstance(step, Join):
            until, place = request.joined(state)
            now = until * MICROS
            continue
        assert isinstance(step, Start)
        now, place = max(now, request.granted(state)[0]), None
        if now >= (NOW + rate.per_seconds * SECOND) * MICROS:
            return count
        count += 1


def _task_starts(name: str, number: int) -> None:
    rate = task(rate={"key": "r", "limit": 10, "per_seconds": 60, name: number}).rate
    assert rate is not None
    _starts(rate)


def _switch_starts(name: str, number: int) -> None:
    rate = {"limit": 10, "per_seconds": 60, name: number}
    switch = _switch(rate=rate)
    (found,) = Switches({switch.key: switch}).rates(task())
    _starts(found)


def _leases(tasks: int) -> None:
    """Check that this number of due tasks is leased at once."""
    with Pulled() as pulled:
        for _ in range(tasks + 1):
            pulled.create_pulled()
        pulled.run(5 * SECOND)
        assert len(pulled.lease(most=tasks)) == tasks


def _polls(seconds: int) -> None:
    """Check that the response comes after `seconds` if there is no task."""
    with Pulled() as pulled:
        began = pulled.now
        assert pulled.lease(wait=seconds) == []
        assert -SECOND // 2 <= pulled.now - began - seconds * SECOND < SECOND


def _leases_for(seconds: int, first: int | None = None) -> None:
    """Check that a lease, and its renewal by a heartbeat, last `seconds`, and another worker then gets the task."""
    with Pulled() as pulled:
        task_id = pulled.create_pulled(timeout_seconds=3600)
        pulled.run(5 * SECOND)
        wanted = {"lease_seconds": seconds, "acknowledge_within_seconds": first}
        given = pulled.ask("POST", "/v1/leases", {"types": [PULLED], "worker": "a", **wanted})
        (lease,) = given.body["leases"]
        record = pulled.record(task_id)
        assert (record.lease_expires_at or 0) - (record.run_at or 0) == (first or seconds) * SECOND
        before = pulled.now
        assert pulled.tell(lease, "heartbeat").status == 200
        ends = pulled.record(task_id).lease_expires_at or 0
        assert before <= ends - seconds * SECOND <= pulled.now
        pulled.lease_one(worker="b")
        assert ends + MAX_CLOCK_DIFFERENCE <= pulled.now <= ends + LEASE_RETURN_MARGIN + 4 * SECOND


def _progresses(percent: int) -> None:
    """Check that the poll interval is short for a nearly complete task, and normal for a task that has just started."""
    running = due_task(state=State.RUNNING, run_at=NOW, progress=Progress(percent))
    assert poll_interval(running, NOW + MINUTE) == (SHORTEST if percent else MINUTE // 10)


def _waits_for_an_outcome(seconds: int) -> None:
    """Check that the response comes after `seconds` if the task has no outcome yet."""
    with Pulled() as pulled:
        task_id, began = pulled.create_pulled(), pulled.now
        assert pulled.ask("GET", f"/v1/tasks/{task_id}", query=f"wait_seconds={seconds}").status == 200
        assert 0 <= pulled.now - began - seconds * SECOND < SECOND


def _lasts(seconds: int) -> None:
    """Check that a topology's run is checked at its deadline, and that lease and lock last until the run can end."""
    graph = graph_of({"nodes": {"a": {"type": "report"}}, "timeout_seconds": seconds})
    assert graph.lasts_seconds == seconds
    running = replace(task(notify_within_seconds=graph.lasts_seconds), target=TopologyTarget(), run_at=NOW)
    end = NOW + seconds * SECOND
    assert deferred_until(running, NOW) == end + TOPOLOGY_MARGIN < NOW + LONGEST_LOCK_HOLD
    before = max(NOW, end - MINUTE)
    assert end < min(reminders(running, end + TOPOLOGY_MARGIN, before, LOOK_AHEAD)) < end + MINUTE


def _delays_node(seconds: float) -> None:
    """Check that a node's delay is within the longest duration of a run."""
    graph = graph_of({"nodes": {"a": {"type": "report", "delay_seconds": seconds}}})
    assert (graph.by_key["a"].spec.delay or 0) == seconds * SECOND <= graph.lasts_seconds * SECOND


def _is_expected(seconds: float) -> None:
    """Check that two consecutive nodes are expected to take twice as long as one node."""
    node = {"type": "report", "expected_seconds": seconds}
    graph = graph_of({"nodes": {"a": node, "b": {**node, "depends_on": ["a"]}}})
    assert critical_path(graph).seconds == 2 * seconds


def _maps(items: int) -> None:
    """Check that this number of map items start at once, and that the next item starts after an item has ended."""
    payload = map_payload(NodeMap("parents", max_parallel=items), {"type": "report"}, list(range(items + 1)))
    nodes = graph_of_map(json.loads(payload))["nodes"]
    waiting = {key: node["depends_on"] for key, node in nodes.items() if "depends_on" in node}
    assert waiting == {str(items): ["0"]}


def _tolerates(failures: int) -> None:
    """Check that this number of map items can fail, and that one more failure stops the map."""
    items = map_payload(NodeMap("parents", tolerated_failures=failures), {"type": "report"}, list(range(failures + 1)))
    graph = outline_of(items)
    failed = dict.fromkeys(graph.order[:failures], FAILED)
    assert not is_stopped(graph, statuses(graph, **failed))
    assert is_stopped(graph, statuses(graph, **failed, **{graph.order[-1]: FAILED}))


ROWS: dict[str, Callable[[int], None]] = {
    "schedule.spread_seconds": lambda seconds: _delays("spread_seconds", seconds),
    "schedule.jitter_seconds": lambda seconds: _delays("jitter_seconds", seconds),
    "schedule.catch_up_seconds": _catches_up,
    "schedule.expect_every_seconds": _expects,
    "schedule.expect_duration_factor": _is_usual,
    "schedule.remaining_runs": _remains,
    "schedule.permanent.gap_seconds": _pauses,
    "backfill.per_minute": _fills,
    "task.delay_seconds": _is_due,
    "task.debounce.seconds": _debounces,
    "task.debounce.max_seconds": _debounces_no_longer,
    "task.retry.max_attempts": _tries,
    "task.retry.initial_seconds": lambda seconds: _waits_between("initial_seconds", seconds),
    "task.retry.multiplier": lambda multiplier: _waits_between("multiplier", multiplier),
    "task.retry.max_seconds": lambda seconds: _waits_between("max_seconds", seconds),
    "task.retry.max_duration_seconds": _tries_no_longer,
    "task.expires_seconds": _expires,
    "task.fair_weight": _shares,
    "task.timeout_seconds": _times_out,
    "task.notify_within_seconds": _notifies,
    "task.lock.max_holders": lambda most: _holds(claims_of(task(lock={"key": "db-17", "max_holders": most}))[0]),
    "task.lock.wait_seconds": _waits_for_a_lock,
    "task.locks.max_holders": lambda most: _holds(
        claims_of(task(locks=[{"key": "db-17", "max_holders": most}, {"key": "gpu"}]))[0]
    ),
    "task.locks.wait_seconds": _waits_for_a_lock_of_two,
    "task.rate.limit": lambda starts: _task_starts("limit", starts),
    "task.rate.per_seconds": lambda seconds: _task_starts("per_seconds", seconds),
    "task.rate.burst": lambda starts: _task_starts("burst", starts),
    "task.notify_on.late_seconds": _is_told_late,
    "task.notify_on.running_seconds": _is_told_long,
    "task.target.approval.timeout_seconds": _waits_for_an_approval,
    "task.target.wait_for_event.timeout_seconds": _waits_for_an_event,
    "task.target.wait_for_event.lookback_seconds": _looks_back,
    "task.target.http.success": _succeeds,
    "task.target.http.response.max_bytes": _keeps,
    "task.target.http.batch.max_size": lambda size: _shares_calls(max_size=size),
    "task.target.http.batch.max_wait_seconds": lambda seconds: _shares_calls(max_wait_seconds=seconds),
    "task_query.wait_seconds": _waits_for_an_outcome,
    "topology.timeout_seconds": _lasts,
    "node.delay_seconds": _delays_node,
    "node.expected_seconds": _is_expected,
    "node.map.max_parallel": _maps,
    "node.map.tolerated_failures": _tolerates,
    "switch.max_concurrent": _caps,
    "switch.rate.limit": lambda starts: _switch_starts("limit", starts),
    "switch.rate.per_seconds": lambda seconds: _switch_starts("per_seconds", seconds),
    "switch.rate.burst": lambda starts: _switch_starts("burst", starts),
    "lease.max_tasks": _leases,
    "lease.wait_seconds": _polls,
    "lease.lease_seconds": _leases_for,
    "lease.acknowledge_within_seconds": lambda seconds: _leases_for(900, seconds),
    "heartbeat.percent": _progresses,
}
OF_TASKS = bounded(TaskCreate)
RANGES: dict[str, Any] = {
    f"{request}.{name}": ends
    for request, numbers in {
        "schedule": bounded(ScheduleCreate, "task"),
        "backfill": bounded(BackfillCreate),
        "task": OF_TASKS,
        "task_query": bounded(TaskQuery),
        # Nodes' task fields have the same ranges as tasks.
        "topology": dict(bounded(TopologyCreate).items() - OF_TASKS.items()),
        "node": dict(bounded(TopologyNode).items() - OF_TASKS.items()),
        "switch": bounded(SwitchPut),
        "calendar": bounded(CalendarFields),
        "lease": bounded(LeaseRequest),
        "heartbeat": bounded(LeaseHeartbeat),
    }.items()
    for name, ends in numbers.items()
    if name not in NO_SETTINGS
}


def test_each_number_in_a_request_has_a_row_with_its_range() -> None:
    """Each number in a request has a row in this module, and a range with two ends."""
    assert set(RANGES) == set(ROWS)
    assert [name for name, ends in RANGES.items() if None in ends] == []


@pytest.mark.parametrize(
    ("model", "like"),
    [(TaskTemplate, "task"), (TaskTemplateUpdate, "task"), (TaskPatch, "task"), (SchedulePatch, "schedule")],
)
def test_a_number_has_the_same_range_in_every_request(model: type[BaseModel], like: str) -> None:
    """Updates and schedules' tasks have the same ranges as creations, so this module's rows apply to them, too."""
    numbers = {name: ends for name, ends in bounded(model, "task", "target").items() if name not in NO_SETTINGS}
    assert numbers
    assert {f"{like}.{name}": ends for name, ends in numbers.items()}.items() <= RANGES.items()


@pytest.mark.parametrize("end", ["lowest", "highest"])
@pytest.mark.parametrize("name", ROWS)
def test_a_number_has_its_effect_at_both_ends_of_its_range(name: str, end: str) -> None:
    """A number at either end of its range is not only accepted but also has an effect."""
    ROWS[name](RANGES[name][end == "highest"])
