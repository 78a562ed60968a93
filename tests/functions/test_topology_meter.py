"""Tests of the exact costs of topologies, in addition to the usual costs of their nodes' tasks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import boto3
import pytest

from duetime import composition
from duetime.composition import composed
from duetime.composition.core import CoreServices
from duetime.composition.tasks import TaskServices
from duetime.domain.ids import TaskId
from duetime.domain.operating_parameters import SHORTEST_CHECK_INTERVAL
from duetime.domain.tasks.task_options import Priority
from duetime.environment_variables import Variable
from duetime.handlers import REGISTRY, Registered
from duetime.ports.queues import Outgoing
from duetime.services.enqueue import message_for
from duetime.services.topologies.node_tasks import NodeTasks
from tests.adapters.clouds import Cloud
from tests.functions.api.gateway import Gateway
from tests.functions.meter import Meter
from tests.functions.stack import OWNER, Stack

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duetime_local.emulator import Emulator

pytestmark = pytest.mark.engine
PATH = "/v1/topologies"
WAITING = '{"StartAt": "Wait", "States": {"Wait": {"Type": "Wait", "Seconds": 3600, "End": true}}}'
"""A state machine that only waits, because the tests execute the states themselves."""
OWN_TASK = 1 + 1 + 2
"""The writes for the topology's own task: its record, its claim, and two for its deferral, including the next timer."""
RUN = 3
"""The writes of the run's progress: when the run begins, when it opens, and when it ends."""
END = 1 + 3
"""The writes at the end: the outcome, a refused claim and a claim by the worker, and `finished_at`."""
NODE = 3
"""The writes for every task: its record, its lease and its outcome."""
NODE_MORE = 2
"""The extra writes for every node: `finished_at`, as work follows its end, and its expiry after the topology's end."""
CHAIN: dict[str, dict[str, Any]] = {
    "first": {"type": "node"},
    "second": {"type": "node", "depends_on": ["first"]},
    "third": {"type": "node", "depends_on": ["second"]},
}


class Graphs:
    """The Lambda functions over the embedded engine, with a meter of all calls.

    The test executes the state machine's states itself.
    """

    def __init__(self, session: boto3.Session, arn: str) -> None:
        self.meter = Meter(session)
        cloud = Cloud(session.client("dynamodb"), session.client("s3"), session.client("sqs"))
        self.stack = Stack(cloud, session, {Variable.TOPOLOGY_MACHINE: arn})
        self.api = Gateway(headers={"X-Duetime-Owner": OWNER})
        self.meter.reset()

    def submit(self, nodes: dict[str, Any], **fields: Any) -> str:  # noqa: ANN401 - JSON
        """Create a topology, and return its task id."""
        made = self.api.send("POST", PATH, {"nodes": nodes, **fields})
        assert made.status == 201, made.body
        return str(made.body["id"])

    def state(self, name: str, topology: str, fence: int = 1, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        """Execute a state of the state machine for the run of an attempt, by default the first attempt."""
        return dict(
            self.stack.call("topology", {"state": name, "task_id": topology, "fence": fence, "looks": 0, **more})
        )

    def run(self, nodes: dict[str, Any]) -> str:
        """Run a topology to its end within the minute in which it began."""
        topology = self.submit(nodes)
        self.go_on(topology, len(nodes))
        return topology

    def go_on(self, topology: str, nodes: int, fence: int = 1) -> None:
        """Execute an attempt of a topology that runs this many nodes, in enough rounds for a chain."""
        self.work()
        plan = self.state("plan", topology, fence)
        for number in (number for chunk in plan["chunks"] for number in chunk):
            self.state("wait", topology, fence, number=number, token="x" * 600)
        for _ in range(nodes):
            self.work()
        assert self.state("finish", topology, fence)["over"]
        self.work()

    def estimated_writes(self, nodes: dict[str, Any]) -> float:
        """The write units that the API estimates for a topology; the creation of this topology is not counted."""
        before = self.meter.table_units, self.meter.index_units
        made = self.api.send("POST", PATH, {"nodes": nodes}, query="estimate=1")
        self.meter.table_units, self.meter.index_units = before
        lines = made.body["estimate"]["lines"]
        return float(sum(each["quantity"] for each in lines if each["part"] == "table writes"))

    def work(self) -> None:
        """Let the worker process the messages that are ready."""
        self.stack.clock.at += 10
        self.stack.work(Priority.NORMAL)


@pytest.fixture
def graphs(engine: Emulator, monkeypatch: pytest.MonkeyPatch) -> Iterator[Graphs]:
    """The Lambda functions, and a handler that does no work."""
    for name, value in engine.environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setitem(REGISTRY, "node", Registered({"run": lambda _context, _payload: {"rows": 3}}))
    session = boto3.Session()
    machines = session.client("stepfunctions")
    made = machines.create_state_machine(
        name=f"waiting-{id(session)}", definition=WAITING, roleArn="arn:aws:iam::000000000000:role/any"
    )
    yield Graphs(session, made["stateMachineArn"])
    composition.use(None)


ASKED = CHAIN | {"second": CHAIN["second"] | {"when": "parents.first.result.rows == `3`"}}


@pytest.mark.parametrize(
    "nodes", [CHAIN, ASKED, {f"n{i}": {"type": "node"} for i in range(8)}], ids=["chain", "condition", "apart"]
)
def test_a_node_costs_three_units_more_than_a_task(graphs: Graphs, nodes: dict[str, Any]) -> None:
    """A topology costs eleven units, and each node three units more than a task.

    The extra units are for `finished_at`, the expiry, and a release or token. First nodes need no release, only last
    nodes need a token, and a condition costs nothing.
    """
    graphs.run(nodes)
    waited_for = {parent for node in nodes.values() for parent in node.get("depends_on", ())}
    waiting = sum(bool(node.get("depends_on")) for node in nodes.values())
    last = len(nodes) - len(waited_for)
    wanted = OWN_TASK + RUN + END + len(nodes) * (NODE + NODE_MORE) + waiting + last
    assert (graphs.meter.table_units, graphs.meter.index_units) == (wanted, len(nodes) + 1)
    assert graphs.meter.requests["StartExecution"] == 1
    assert graphs.meter.requests["SendTaskSuccess"] == last
    assert graphs.estimated_writes(nodes) == graphs.meter.table_units + graphs.meter.index_units


def test_a_topology_within_another_costs_as_much_as_both(graphs: Graphs) -> None:
    """A topology within another topology costs as much as both topologies, except for the task that they share.

    The record, claim and outcome of the shared task are written only once.
    """
    inner = {"type": "part", "target": {"kind": "topology"}, "payload": {"nodes": CHAIN}}
    topology = graphs.submit({"part": inner})
    graphs.work()
    graphs.state("plan", topology)
    graphs.work()
    shown = graphs.api.send("GET", f"{PATH}/{topology}").body["nodes"]["part"]["task_id"]
    for each in (topology, shown):
        for number in (number for chunk in graphs.state("plan", each)["chunks"] for number in chunk):
            graphs.state("wait", each, number=number, token="x" * 600)
    for _ in CHAIN:
        graphs.work()
    for each in (shown, topology):
        assert graphs.state("finish", each)["over"]
        graphs.work()
    chain = len(CHAIN) * (NODE + NODE_MORE) + 2 + 1
    own = OWN_TASK + RUN + END
    # These units are for the inner topology's expiry, written at the outer topology's end, and the inner topology's
    # token.
    assert graphs.meter.table_units == own + own + chain + 2
    assert graphs.meter.requests["StartExecution"] == 2
    assert graphs.estimated_writes({"part": inner}) == graphs.meter.table_units + graphs.meter.index_units


def test_a_map_costs_as_much_as_a_topology_of_its_items(graphs: Graphs) -> None:
    """A map costs as much as a topology with its items, plus a release.

    Each item that waits because of a limit also costs a release.
    """
    each = {"type": "node", "depends_on": ["list"], "map": {"over": "[`1`, `2`, `3`]", "max_parallel": 2}}
    topology = graphs.submit({"list": {"type": "node"}, "each": each})
    graphs.work()
    for number in (number for chunk in graphs.state("plan", topology)["chunks"] for number in chunk):
        graphs.state("wait", topology, number=number, token="x" * 600)
    graphs.work()
    graphs.work()
    inner = graphs.api.send("GET", f"{PATH}/{topology}").body["nodes"]["each"]["task_id"]
    for number in (number for chunk in graphs.state("plan", inner)["chunks"] for number in chunk):
        graphs.state("wait", inner, number=number, token="x" * 600)
    for _ in range(3):
        graphs.work()
    for whole in (inner, topology):
        assert graphs.state("finish", whole)["over"]
        graphs.work()
    own = OWN_TASK + RUN + END
    release, token, expiry = 1, 1, 1
    outer = own + NODE + NODE_MORE
    items = 3 * (NODE + NODE_MORE) + release + 2 * token
    assert graphs.meter.table_units == outer + own + release + token + expiry + items


def test_retrying_chosen_nodes_costs_one_unit_and_their_run(graphs: Graphs) -> None:
    """Retrying chosen nodes costs one unit for reopening the topology, and then a run of the chosen nodes.

    Each kept node costs two units for its expiry.
    """
    topology = graphs.run(CHAIN)
    graphs.meter.reset()
    assert graphs.api.send("POST", f"{PATH}/{topology}/retry", {"nodes": ["third"]}).status == 200
    assert (graphs.meter.table_units, graphs.meter.requests["GetItem"]) == (1, 2)
    graphs.meter.reset()
    fence = composed(TaskServices).reader.get(OWNER, TaskId(topology)).fence + 1
    graphs.go_on(topology, 1, fence)
    release, token, kept = 1, 1, 2
    wanted = OWN_TASK - 1 + RUN + END + NODE + NODE_MORE + release + token + kept * 2
    assert (graphs.meter.table_units, graphs.meter.index_units) == (wanted, 1)


def test_nodes_that_start_together_are_sent_together(graphs: Graphs) -> None:
    """If twenty nodes start after one node, two requests send their messages.

    The nodes are read together, and each node is released by a write.
    """
    fan = {"first": {"type": "node"}, **{f"n{i}": {"type": "node", "depends_on": ["first"]} for i in range(20)}}
    topology = graphs.submit(fan)
    graphs.work()
    graphs.state("plan", topology)
    graphs.meter.reset()
    graphs.work()
    assert graphs.meter.requests["SendMessageBatch"] == 2
    # One request reads the run, and another request reads the nodes that are released.
    assert graphs.meter.requests["BatchGetItem"] == 2
    assert graphs.meter.table_units == 20 + 3


def test_nodes_that_wait_are_written_in_batches(graphs: Graphs) -> None:
    """Sixty nodes that wait for one node are written in three requests, which cost as many units as single puts."""
    fan = {"first": {"type": "node"}, **{f"n{i}": {"type": "node", "depends_on": ["first"]} for i in range(60)}}
    topology = graphs.submit(fan)
    graphs.work()
    graphs.meter.reset()
    graphs.state("plan", topology)
    assert graphs.meter.requests["BatchExecuteStatement"] == 3
    # These writes are for the node that starts at once, and for the run's progress when the run begins and when it
    # opens.
    assert graphs.meter.requests["PutItem"] == 1 + 2
    assert (graphs.meter.table_units, graphs.meter.index_units) == (61 + 2, 61)


def test_the_end_of_a_last_node_reads_the_other_last_nodes(graphs: Graphs) -> None:
    """When one of three last nodes ends, the other two are read in one batch.

    If there are many last nodes, the others are not read.
    """
    found = {}
    for later in (2, 10):
        nodes = {"now": {"type": "node"}, **{f"n{i}": {"type": "node", "delay_seconds": 600} for i in range(later)}}
        graphs.work()
        topology = graphs.submit(nodes)
        graphs.work()
        graphs.state("plan", topology)
        graphs.meter.reset()
        graphs.work()
        found[later] = graphs.meter.requests["BatchGetItem"], graphs.meter.read_units
    assert found[2] == (found[10][0] + 1, found[10][1] + 2)


def test_first_nodes_are_written_in_batches(graphs: Graphs) -> None:
    """Sixty nodes without parents are written in three requests, and their messages are sent in six."""
    topology = graphs.submit({f"n{i}": {"type": "node"} for i in range(60)})
    graphs.work()
    graphs.meter.reset()
    graphs.state("plan", topology)
    # These writes are for the run's progress when the run begins and when it opens.
    assert (graphs.meter.requests["BatchExecuteStatement"], graphs.meter.requests["PutItem"]) == (3, 2)
    assert graphs.meter.requests["SendMessageBatch"] == 6
    assert (graphs.meter.table_units, graphs.meter.index_units) == (60 + 2, 60)


def test_a_plan_that_restarts_after_a_crash_costs_no_more_units(
    graphs: Graphs, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A plan that restarts after a crash costs no additional units, because each batch detects existing records."""
    fan = {"first": {"type": "node"}, **{f"n{i}": {"type": "node", "depends_on": ["first"]} for i in range(60)}}
    topology = graphs.submit(fan)
    graphs.work()
    with monkeypatch.context() as cut_off:
        cut_off.setattr(NodeTasks, "start", lambda _self, _run: 1 / 0)
        with pytest.raises(ZeroDivisionError):
            graphs.state("plan", topology)
    graphs.meter.reset()
    graphs.state("plan", topology)
    # These writes are for the node that starts at once, and for the run's progress when the run opens.
    assert (graphs.meter.requests["BatchExecuteStatement"], graphs.meter.requests["PutItem"]) == (3, 1 + 1)
    assert (graphs.meter.table_units, graphs.meter.index_units) == (60 + 2, 1)


def test_a_check_of_a_run_costs_two_units_and_one_question(graphs: Graphs) -> None:
    """A check of a run costs a timer, a refused claim and one request for the execution's status.

    The nodes are read in batches and not written.
    """
    topology = graphs.submit({f"n{i}": {"type": "node", "delay_seconds": 9_000} for i in range(8)})
    graphs.work()
    graphs.state("plan", topology)
    graphs.stack.clock.at += SHORTEST_CHECK_INTERVAL
    composed(CoreServices).queues.send(
        [Outgoing(message_for(composed(TaskServices).reader.get(OWNER, TaskId(topology))), 0)]
    )
    graphs.meter.reset()
    graphs.work()
    assert graphs.meter.table_units == 2
    assert graphs.meter.requests["DescribeExecution"] == 1
    # One request reads the nodes, and two read the topology.
    assert graphs.meter.requests["BatchGetItem"] == 3


def test_a_definition_costs_its_items_and_each_run_one_more_read(graphs: Graphs) -> None:
    """The first version of a definition costs one write.

    Each later version costs another write, for a copy of the previous version. Equal content costs no write, and a run
    by definition costs one more read.
    """
    definition = {"nodes": CHAIN, "parameters": {"region": {"default": "eu"}}}
    for timeout, units in ((60, 1), (90, 2), (90, 0)):
        graphs.meter.reset()
        path = f"{PATH}/definitions/nightly"
        assert graphs.api.send("PUT", path, {**definition, "timeout_seconds": timeout}).status in {200, 201}
        assert (graphs.meter.table_units, graphs.meter.requests["GetItem"]) == (units, 1)
    graphs.meter.reset()
    graphs.submit(CHAIN)
    own = graphs.meter.table_units, graphs.meter.requests["GetItem"]
    graphs.meter.reset()
    assert graphs.api.send("POST", f"{PATH}/definitions/nightly/runs", {}).status == 201
    assert (graphs.meter.table_units, graphs.meter.requests["GetItem"]) == (own[0], own[1] + 1)
