"""A map is a node that runs for each item of a parent's list."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime.domain.limits import MAX_NODES
from duetime.domain.times import DAY
from duetime.handlers import Unretriable
from tests.parts import others_slow
from tests.scenarios.graphs import PATH, Graphs
from tests.scenarios.scenario import HOUR, MINUTE, PLAIN, SECOND

if TYPE_CHECKING:
    from duetime.domain.tasks.task import Task
    from duetime_testing.simulation.faults import Call

ONCE = {"max_attempts": 1}
ITEMS = ["".join(str(number * 2654435761 % 2**32) for number in range(200 * n, 200 * n + 200)) for n in range(4)]
"""Items that are stored outside their map's record."""


class Maps(Graphs):
    """A scenario about a node `list` whose result is a list, a map `each` over that list, and a node `last`.

    Attributes:
        listed: the list that `list` returns.
        payloads: the payloads of the processed items, in order.
        most: the largest number of items processed concurrently.
    """

    def __init__(self) -> None:
        super().__init__()
        self.listed: Any = []
        self.payloads: list[Any] = []
        self.failing: tuple[Any, ...] = ()
        self.seconds = self.list_seconds = 0
        self.most = self._now = 0
        self.given: Any = None

    def act(self, phase: str, context: Any, payload: Any) -> Any:  # noqa: ANN401 - a handler gets it
        """Return the list, or process an item."""
        super().act(phase, context, payload)
        key = self.key_of(context.task_id)
        if key == "list":
            self.take(self.list_seconds * SECOND)
            return self.listed
        if key == "last":
            self.given = context.inputs["each"]
            return None
        self.payloads.append(payload)
        self._now += 1
        self.most = max(self.most, self._now)
        self.take(self.seconds * SECOND)
        self._now -= 1
        if payload["item"] in self.failing:
            raise Unretriable
        return [key, payload["item"]]

    def run_map(self, items: Any, **fields: Any) -> Task:  # noqa: ANN401 - JSON
        """Run the graph to its end."""
        self.listed = items
        self.submit_map(**fields)
        return self.run_until_ended()

    def submit_map(self, **fields: Any) -> None:  # noqa: ANN401 - JSON
        """Create the graph."""
        each: dict[str, Any] = {
            "type": PLAIN,
            "retry": ONCE,
            "depends_on": ["list"],
            "map": {"over": "parents.list.result", **fields},
        }
        payload = {"item": "<duetime.item>", "text": "no. <duetime.index>: <duetime.item>", "node": "<duetime.node>"}
        nodes = {"list": {"type": PLAIN}, "each": {**each, "payload": payload, "timeout_seconds": 800}}
        self.submit({**nodes, "last": {"type": PLAIN, "depends_on": ["each"], "inputs": ["each"]}})

    def shown(self) -> dict[str, Any]:
        """The map as a topology."""
        found = self.ask("GET", f"{PATH}/{self.node('each').id}")
        assert found.status == 200, found.body
        return dict(found.body)


def test_a_maps_results_are_in_the_order_of_its_items() -> None:
    """A map's results are in item order, and placeholders are replaced by the item and its index."""
    with Maps() as graphs:
        ended = graphs.run_map(["a", {"b": 1}, "<duetime.task-id>"])
        assert ended.state == "succeeded", ended
        assert graphs.given == [["0", "a"], ["1", {"b": 1}], ["2", "<duetime.task-id>"]]
        by_node = {each["node"]: each for each in graphs.payloads}
        assert by_node["0"] == {"item": "a", "text": "no. 0: a", "node": "0"}
        assert by_node["1"]["text"] == 'no. 1: {"b":1}'
        assert by_node["2"]["item"] == "<duetime.task-id>"
        shown = graphs.shown()
        assert (shown["counts"], shown["topology"]["node"]) == ({"succeeded": 3}, "each")


def test_no_more_items_than_max_parallel_run_concurrently() -> None:
    """`max_parallel` limits how many items run concurrently, and every item runs."""
    with Maps() as graphs:
        graphs.seconds = 20
        assert graphs.run_map(list(range(7)), max_parallel=2).state == "succeeded"
        assert graphs.most == 2
        assert graphs.given == [[str(number), number] for number in range(7)]


def test_a_map_over_an_empty_list_succeeds_at_once() -> None:
    """A map over an empty list succeeds without starting an execution for the map."""
    with Maps() as graphs:
        assert graphs.run_map([]).state == "succeeded"
        assert graphs.given == []
        assert (graphs.shown()["counts"], len(graphs.executions())) == ({}, 1)


def test_failed_items_of_a_map_are_tolerated_up_to_a_limit() -> None:
    """Tolerated failures have null results; one more failure fails the map, and no more items start."""
    with Maps() as graphs:
        graphs.failing = (1, 2)
        assert graphs.run_map(list(range(4)), tolerated_failures=2, max_parallel=1).state == "succeeded"
        assert graphs.given == [["0", 0], None, None, ["3", 3]]
    with Maps() as graphs:
        graphs.failing = (1, 2)
        ended = graphs.run_map(list(range(6)), tolerated_failures=1, max_parallel=1)
        assert (ended.state, ended.error and ended.error.message) == ("failed", "the node each failed")
        assert [each["item"] for each in graphs.payloads] == [0, 1, 2]


def test_a_map_over_an_invalid_list_fails_with_the_reason() -> None:
    """A result that is not a list, or is a list that is too long, fails the map, and the error says why."""
    for items, words in (({"a": 1}, "is not a list"), (list(range(MAX_NODES + 1)), "10001 items; 10000 are allowed")):
        with Maps() as graphs:
            graphs.run_map(items)
            error = graphs.node("each").error
            assert error is not None
            assert (error.type, words in error.message) == ("MapFailed", True)


def test_a_map_can_be_read_and_cancelled_before_its_items_are_known() -> None:
    """A map whose list is not known yet has no nodes, and can be cancelled."""
    with Maps() as graphs:
        graphs.list_seconds = 40
        graphs.submit_map()
        graphs.run(SECOND // 2)
        assert graphs.run_until(lambda: graphs.has_node("each"), MINUTE, SECOND // 10)
        assert graphs.shown()["nodes"] == {}
        graphs.until_answered("cancel")
        assert (graphs.run_until_ended().state, graphs.node("each").state) == ("cancelled", "cancelled")


@pytest.mark.parametrize("meanwhile", others_slow(["nothing", "cancelled", "worker dies", "released by another"]))
def test_all_items_of_a_map_expire_after_an_interrupted_release(meanwhile: str) -> None:
    """All items of a map expire in the end, even if the release of the map is interrupted, repeated or cancelled."""
    with Maps() as graphs:
        graphs.faulty = True

        def is_release(call: Call) -> bool:
            if call.machine.function != "worker" or call.operation != "update_item" or not graphs.has_node("each"):
                return False
            moves_on = call.request["Key"]["s"]["S"] == graphs.node("each").id.text
            return moves_on and {"S": "scheduled"} in call.request["ExpressionAttributeValues"].values()

        states: list[str] = []

        def happen(call: Call) -> None:
            if meanwhile == "cancelled":
                graphs.send("POST", f"{PATH}/{graphs.topology}/cancel")
                graphs.take(10 * SECOND)
            elif meanwhile == "worker dies":
                call.machine.die()
            elif meanwhile == "released by another":
                graphs.take(8 * MINUTE)
                states.append(graphs.node("each").state.value)

        met = graphs.once(is_release, happen)
        ended = graphs.run_map(ITEMS)
        assert met
        assert "blocked" not in states
        assert ended.state == ("cancelled" if meanwhile == "cancelled" else "succeeded")
        graphs.run(HOUR)
        graphs.ticking = False
        graphs.time.run_until(graphs.now + 400 * DAY)
        graphs.expire()
        assert [item["s"]["S"] for item in graphs.items("x#")] == []
