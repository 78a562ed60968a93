"""The state machine as it is deployed, run by moto's interpreter of the Amazon States Language.

What that interpreter calls is the function itself; workers take their messages from moto's queues. It knows nothing of
the quotas of Step Functions: those are asserted on the definition (`tests/infra/test_topologies.py`).
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import dataclass, field
from threading import Lock
from typing import TYPE_CHECKING, Any

import boto3
import pytest
from moto import mock_aws
from moto.stepfunctions.parser.asl.component.state.exec.state_task import lambda_eval_utils
from moto.stepfunctions.parser.asl.eval.callback.callback import CallbackEndpoint

from duetime import composition
from duetime.composition import composed
from duetime.domain.ids import TaskId
from duetime.domain.limits import WAITS_AT_ONCE
from duetime.domain.task import Priority
from duetime.handlers import REGISTRY, Registered, Unretriable
from duetime.ports.queues import Outgoing
from duetime.services.placing import message_for
from duetime.settings import Variable
from infra.topologies import definition
from tests.adapters.clouds import Cloud
from tests.functions.api.gateway import Gateway
from tests.functions.stack import OWNER, Stack
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

FUNCTION = "arn:aws:lambda:us-east-1:123456789012:function:topology"
PATH = "/v1/topologies"
PATIENCE = 240.0
DIAMOND: dict[str, dict[str, Any]] = {
    "top": {"type": "node"},
    "left": {"type": "node", "depends_on": ["top"]},
    "right": {"type": "node", "depends_on": ["top"]},
    "bottom": {"type": "node", "depends_on": ["left", "right"]},
}


@dataclass
class Framed:
    """The functions over moto, and the interpreter that invokes one of them.

    Moto is not atomic between threads: one at a time uses it.

    Attributes:
        asked: the states that were asked for, in order.
        broken: how many of the next invocations raise.
        lost: whether tokens that are answered get lost.
    """

    stack: Stack
    api: Gateway
    machines: Any
    ran: list[str] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)
    broken: int = 0
    lost: bool = False
    mutex: Any = field(default_factory=Lock)

    def invoke(self, parameters: dict[str, Any], region: str, state_credentials: object) -> dict[str, Any]:
        """Invoke the function as the interpreter would have moto do it."""
        del region, state_credentials
        event = json.loads(parameters["Payload"])
        with self.mutex:
            self.asked.append(event["state"])
            if self.broken:
                self.broken -= 1
                return {"StatusCode": 200, "FunctionError": "Unhandled", "Payload": {"errorType": "Unavailable"}}
            answer = self.stack.call("topology", event)
        return {"StatusCode": 200, "Payload": json.loads(json.dumps(answer))}

    def submit(self, nodes: dict[str, Any], **fields: Any) -> str:  # noqa: ANN401 - JSON
        """Create a topology."""
        with self.mutex:
            made = self.api.send("POST", PATH, {"nodes": nodes, **fields})
        assert made.status == 201, made.body
        return str(made.body["id"])

    def view(self, topology: str) -> dict[str, Any]:
        """Where it stands."""
        with self.mutex:
            return dict(self.api.send("GET", f"{PATH}/{topology}").body)

    def work(self) -> None:
        """Let a worker have what lies on the queue."""
        with self.mutex:
            self.stack.work(Priority.NORMAL)

    def transitions(self) -> int:
        """How many states the one execution entered: what Step Functions charges for."""
        (execution,) = self.machines.list_executions(stateMachineArn=self.stack.environ[Variable.TOPOLOGY_MACHINE])[
            "executions"
        ]
        history = self.machines.get_execution_history(executionArn=execution["executionArn"], maxResults=1_000)
        return sum(event["type"].endswith("StateEntered") for event in history["events"])

    def look_at(self, topology: str) -> None:
        """Send a message of its task, as the trigger does when a look at it is due."""
        with self.mutex:
            task = composed().reading.get(OWNER, TaskId(topology))
            composed().queues.send([Outgoing(message_for(task), 0)])

    def until_ended(self, topology: str) -> dict[str, Any]:
        """Let workers work until the topology has ended, and its execution too."""

        def look() -> bool:
            self.work()
            return bool(self.view(topology)["finished_at"])

        assert until(look, PATIENCE), (self.view(topology)["counts"], self.executions(), self.asked)
        assert until(lambda: "RUNNING" not in self.executions().values(), PATIENCE), self.executions()
        return self.view(topology)

    def executions(self) -> dict[str, str]:
        """The executions' states by their names."""
        arn = self.stack.environ[Variable.TOPOLOGY_MACHINE]
        return {
            each["name"]: each["status"] for each in self.machines.list_executions(stateMachineArn=arn)["executions"]
        }


@pytest.fixture
def framing(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., Framed]]:
    """Makes the functions and a state machine of the deployed definition, its heartbeat as long as is said."""
    session = boto3.Session("testing", "testing", region_name="us-east-1")
    set_up = CallbackEndpoint.setup_heartbeat_endpoint

    def heeding(self: CallbackEndpoint, heartbeat_seconds: int) -> object:
        """Moto does not hear of an answer that comes before the function has returned; Step Functions does."""
        waiting = set_up(self, heartbeat_seconds)
        if self.get_outcome() is not None:
            waiting.notify()  # type: ignore[no-untyped-call]  # moto leaves it so
        return waiting

    def frame(heartbeat: int | None = None) -> Framed:
        machines = session.client("stepfunctions")
        asl = definition(FUNCTION)
        if heartbeat:
            asl["States"]["Nodes"]["ItemProcessor"]["States"]["Node"]["HeartbeatSeconds"] = heartbeat
        made = machines.create_state_machine(
            name="topologies", definition=json.dumps(asl), roleArn="arn:aws:iam::123456789012:role/any"
        )
        cloud = Cloud(session.client("dynamodb"), session.client("s3"), session.client("sqs"))
        stack = Stack(cloud, session, {Variable.TOPOLOGY_MACHINE: made["stateMachineArn"]})
        framed = Framed(stack, Gateway(headers={"X-Duetime-Owner": OWNER}), machines)

        def run(context: Any, _payload: object) -> str:  # noqa: ANN401 - a handler's context
            framed.ran.append(context.task_id)
            return "done"

        def fail(_context: object, _payload: object) -> None:
            raise Unretriable("on purpose")

        monkeypatch.setitem(REGISTRY, "node", Registered({"run": run, "rollback": run}))
        monkeypatch.setitem(REGISTRY, "bad", Registered({"run": fail, "rollback": lambda _context, _payload: None}))
        monkeypatch.setattr(CallbackEndpoint, "setup_heartbeat_endpoint", heeding)
        monkeypatch.setattr(lambda_eval_utils, "_invoke_lambda_function", framed.invoke)
        return framed

    with mock_aws(config={"stepfunctions": {"execute_state_machine": True}}):
        yield frame
    composition.use(None)


def test_a_diamond_is_planned_waited_for_and_finished(framing: Callable[..., Framed]) -> None:
    """One execution, named by task and attempt: it asks once for each node, and ends when the whole has."""
    framed = framing()
    topology = framed.submit(DIAMOND)
    ended = framed.until_ended(topology)
    assert ended["state"] == "succeeded"
    assert ended["counts"] == {"succeeded": 4}
    assert len(framed.ran) == len(set(framed.ran)) == 4
    assert framed.executions() == {f"{topology}-1": "SUCCEEDED"}
    assert Counter(framed.asked) == {"plan": 1, "wait": 4, "finish": 1}
    assert framed.transitions() == 6 + len(DIAMOND)


def test_a_graph_beyond_one_execution_is_waited_for_by_several(framing: Callable[..., Framed]) -> None:
    """A distributed map: a child for each forty nodes, all under the one execution."""
    framed = framing()
    nodes = {f"n{i}": {"type": "node", "depends_on": ["n0"] if i else []} for i in range(2 * WAITS_AT_ONCE + 5)}
    topology = framed.submit(nodes)
    ended = framed.until_ended(topology)
    assert ended["counts"] == {"succeeded": len(nodes)}
    assert framed.executions() == {f"{topology}-1": "SUCCEEDED"}
    assert Counter(framed.asked)["wait"] == len(framed.ran) == len(nodes)


def test_states_that_break_are_entered_again(framing: Callable[..., Framed]) -> None:
    """What the function raises costs a try of that state, and nothing else."""
    framed = framing()
    framed.broken = 2
    topology = framed.submit(DIAMOND)
    framed.work()
    assert until(lambda: framed.asked.count("wait"), PATIENCE)
    framed.broken = 2
    assert framed.until_ended(topology)["state"] == "succeeded"
    assert len(framed.ran) == 4
    assert framed.executions() == {f"{topology}-1": "SUCCEEDED"}


def test_a_lost_token_is_found_by_the_heartbeat(framing: Callable[..., Framed]) -> None:
    """The wait begins anew with another token, finds that the node has ended, and goes on."""
    framed = framing(heartbeat=3)
    topology = framed.submit({"only": {"type": "node"}})
    framed.work()
    assert until(lambda: framed.asked.count("wait"), PATIENCE)
    with framed.mutex:
        node = composed().directing.get(OWNER, composed().reading.get(OWNER, TaskId(topology)).id)
        assert node.head is not None
        composed()._topologies.put_token(node.head.task_id("only"), "of another wait", composed().outside.clock.now())
    assert framed.until_ended(topology)["state"] == "succeeded"
    assert framed.asked.count("wait") > 1
    assert len(framed.ran) == 1


def test_a_stopped_execution_is_replaced_by_another(framing: Callable[..., Framed]) -> None:
    """A look finds that it is gone: the next attempt's execution takes the run up, and no node runs again."""
    framed = framing()
    topology = framed.submit(DIAMOND)
    framed.work()
    assert until(lambda: framed.asked.count("wait") == len(DIAMOND), PATIENCE)
    machine = framed.stack.environ[Variable.TOPOLOGY_MACHINE]
    (execution,) = framed.machines.list_executions(stateMachineArn=machine)["executions"]
    framed.machines.stop_execution(executionArn=execution["executionArn"])

    def is_gone() -> bool:
        # Moto stops a wait that begins meanwhile when its node has ended.
        framed.work()
        return "RUNNING" not in framed.executions().values()

    assert until(is_gone, PATIENCE)
    framed.look_at(topology)
    ended = framed.until_ended(topology)
    assert ended["state"] == "succeeded"
    # Moto calls an execution that is stopped in a map failed.
    assert framed.executions().keys() == {f"{topology}-1", f"{topology}-2"}
    assert framed.executions()[f"{topology}-2"] == "SUCCEEDED"
    assert len(framed.ran) == len(set(framed.ran)) == 4


def test_a_failure_rolls_back_from_below(framing: Callable[..., Framed]) -> None:
    """The machine looks again and again until the last rollback has ended."""
    framed = framing()
    topology = framed.submit({**DIAMOND, "bad": {"type": "bad", "depends_on": ["bottom"]}}, on_failure="rollback")
    ended = framed.until_ended(topology)
    assert ended["error"]["class"] == "RolledBack"
    assert {ended["nodes"][key]["state"] for key in DIAMOND} == {"rolled_back"}
    forth, back = framed.ran[:4], framed.ran[4:]
    assert (back[0], back[-1]) == (forth[-1], forth[0])
    assert framed.asked.count("finish") > 1
