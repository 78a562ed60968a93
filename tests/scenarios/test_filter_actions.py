"""Requests that cancel or change tasks by filter are bounded, counted and repeatable."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime.adapters.dynamodb import schema
from duetime.services.bulk import filter_actions
from tests.scenarios.graphs import Graphs
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND
from tests.scenarios.tasks import Tasks

if TYPE_CHECKING:
    from duetime_testing.simulation.faults import Call

CANCEL, CHANGE = "/v1/tasks/cancel", "/v1/tasks/update"
PLAINS: dict[str, Any] = {"filter": {"type": PLAIN}, "limit": 100}


def _fill(tasks: Tasks, count: int) -> list[str]:
    """Create this many tasks, a second apart."""
    return [tasks.create(HOUR + number * SECOND) for number in range(count)]


def _all_pieces(tasks: Tasks, body: dict[str, Any]) -> list[dict[str, Any]]:
    """Cancel page by page until all tasks are cancelled."""
    pieces = [tasks.ask("POST", CANCEL, body).body]
    while token := pieces[-1]["next_token"]:
        pieces.append(tasks.ask("POST", CANCEL, body | {"next_token": token}).body)
    return pieces


@pytest.mark.parametrize("order", ["asc", "desc"])
def test_a_filter_action_over_pages_affects_each_task_once(order: str) -> None:
    """Of 25 tasks in pages of up to 4, each is cancelled once, in order, and a repeat changes nothing."""
    with Tasks() as tasks:
        made = sorted(_fill(tasks, 25), reverse=order == "desc")
        body = PLAINS | {"limit": 4, "order": order}
        first = tasks.ask("POST", CANCEL, body).body
        assert [tasks.state(task_id) for task_id in made] == ["cancelled"] * 4 + ["scheduled"] * 21
        rest = _all_pieces(tasks, body | {"next_token": first["next_token"]})
        assert [piece["affected"] for piece in (first, *rest)] == [4] * 6 + [1]
        records = [tasks.record(task_id) for task_id in made]
        assert {task.version for task in records} == {2}
        again = tasks.ask("POST", CANCEL, PLAINS).body
        assert (again["examined"], again["matched"], again["affected"]) == (25, 0, 0)
        assert [tasks.record(task_id) for task_id in made] == records


def failing(_phase: str, _context: object) -> None:
    """A target that fails."""
    raise ValueError


@pytest.mark.parametrize("more", [{}, {"per_second": 0.5}])
def test_a_forced_cancel_by_filter_reaches_the_nodes_of_a_topology(more: dict[str, Any]) -> None:
    """A forced cancel by filter, at once or in the background, cancels the nodes of a running topology soon."""
    with Graphs() as graphs:
        graphs.faulty = True
        graphs.target = failing
        retry = {"max_attempts": 9, "initial_seconds": 80_000, "max_seconds": 80_000}
        graphs.submit({"first": {"type": PLAIN, "retry": retry}, "second": {"type": PLAIN, "depends_on": ["first"]}})
        assert graphs.run_until(lambda: graphs.has_node("first") and graphs.node("first").state == "waiting", MINUTE)
        body = {"filter": {"type": graphs.whole().type}, "force": True, **more}
        assert graphs.ask("POST", CANCEL, body).status in {200, 202}
        assert graphs.run_until(lambda: graphs.whole().state == "cancelled", 30 * SECOND)
        assert graphs.node("first").state == "cancelled"


def test_a_page_with_few_matches_ends_before_its_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    """If few tasks match, a page ends with a token before it times out."""
    monkeypatch.setattr(filter_actions, "MAX_EXAMINED", 100)
    with Tasks() as tasks:
        _fill(tasks, 105)
        body = {"filter": {"name": "none"}, "limit": 100}
        pieces = _all_pieces(tasks, body)
        assert [(piece["examined"], piece["matched"]) for piece in pieces] == [(100, 0), (5, 0)]


def test_tasks_that_were_changed_by_a_filter_run_at_their_new_time() -> None:
    """Tasks whose due time is changed by filter run at the new time, and not at the old time."""
    with Tasks() as tasks:
        _fill(tasks, 3)
        changed = tasks.ask("POST", CHANGE, PLAINS | {"update": {"name": "later", "delay_seconds": 7200}}).body
        assert (changed["matched"], changed["affected"]) == (3, 3)
        tasks.run(HOUR + MINUTE)
        assert not tasks.effects
        tasks.run(HOUR)
        assert tasks.tally() == {"succeeded": 3}


def test_a_filter_action_interrupted_by_an_outage_returns_count_and_token() -> None:
    """If the table fails midway, the response has the count so far and a token; if nothing was done, it is a 503."""
    with Tasks() as tasks:
        tasks.faulty = True
        made = _fill(tasks, 10)
        writes: list[str] = []

        def refuse_later(call: Call) -> None:
            if call.operation == "update_item" and (call.partition or "").startswith("20"):
                writes.append(call.request["Key"][schema.SORT_KEY]["S"])
                if len(writes) > 4:
                    call.refuse()

        tasks.before_call = refuse_later
        body = PLAINS
        first = tasks.ask("POST", CANCEL, body).body
        assert first.get("affected") == 4, first
        assert tasks.ask("POST", CANCEL, body | {"next_token": first["next_token"]}).status == 503
        tasks.before_call = None
        assert tasks.ask("POST", CANCEL, body | {"next_token": first["next_token"]}).body["affected"] == 6
        assert {tasks.state(task_id) for task_id in made} == {"cancelled"}


def test_a_filter_action_skips_a_page_of_expired_tasks() -> None:
    """A page is skipped if it has only expired tasks, which the index still lists."""
    with Tasks() as tasks:
        made = sorted(_fill(tasks, 130), reverse=True)
        gone = set(made[:110])

        def expire(_call: Call) -> None:
            for item in list(tasks.table.every()):
                if item[schema.SORT_KEY]["S"] in gone:
                    tasks.table.watch = lambda _old, _new: None
                    tasks.table.write(tasks.now, (item[schema.PARTITION_KEY]["S"], item[schema.SORT_KEY]["S"]), None)
                    tasks.table.watch = tasks.watching.written

        tasks.once(lambda call: call.operation == "batch_get_item", expire)
        first = _all_pieces(tasks, PLAINS)
        assert (sum(piece["affected"] for piece in first), first[-1]["next_token"]) == (20, None)
