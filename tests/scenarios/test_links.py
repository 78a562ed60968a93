"""A link to a task acts only on the run and the attempt for which it was created."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime.handlers import Accepted
from tests.scenarios.graphs import Graphs
from tests.scenarios.scenario import MINUTE, PLAIN, SECOND
from tests.scenarios.tasks import Tasks
from tests.scenarios.test_approvals import RELEASE, waiting

if TYPE_CHECKING:
    from duetime_testing.simulation.faults import Call
    from tests.scenarios.scenario import Scenario


def link_to(scenario: Scenario, task_id: str, *actions: str, **more: object) -> str:
    """The path of a link to a task."""
    made = scenario.ask("POST", f"/v1/tasks/{task_id}/links", {"actions": [*actions], **more})
    assert made.status == 201, made.body
    return str(made.body["url"]).removeprefix("https://api.example.org")


def use(scenario: Scenario, path: str, **body: object) -> tuple[int, Any]:
    """Use a link; return the status with the problem's code or the action."""
    answer = scenario.ask("POST", path, body)
    return answer.status, answer.body.get("code", answer.body.get("used_for"))


def test_a_link_approves_a_node_with_a_payload() -> None:
    """A topology continues when a link approves one of its nodes with a payload."""
    with Graphs() as graphs:
        graphs.submit(RELEASE)
        graphs.run(MINUTE)
        node = graphs.node("approve").id.text
        path = link_to(graphs, node, "approve", "reject", takes_payload=True)
        graphs.topologies.signalled.add((node, True))
        assert use(graphs, path, action="approve", payload=7) == (200, "approve")
        assert graphs.run_until_ended().state == "succeeded"
        assert graphs.ran == ["build", "publish"]


def test_a_link_from_before_a_retry_is_rejected() -> None:
    """A link from before a task's retry is refused, but a new link works."""
    with Graphs() as graphs:
        task_id = waiting(graphs).id.text
        old = link_to(graphs, task_id, "approve")
        graphs.topologies.signalled |= {(task_id, False), (task_id, True)}
        assert use(graphs, link_to(graphs, task_id, "reject")) == (200, "reject")
        graphs.run(MINUTE)
        assert graphs.ask("POST", f"/v1/tasks/{task_id}/retry").status == 200
        graphs.run(MINUTE)
        assert graphs.record(task_id).state == "waiting"
        assert use(graphs, old) == (410, "link_ended")
        assert graphs.ask("GET", old).status == 410
        assert use(graphs, link_to(graphs, task_id, "approve")) == (200, "approve")


def deferred(tasks: Tasks, **more: Any) -> str:  # noqa: ANN401 - JSON
    """Create a task whose target has accepted the work and reports its end later; return the task's id."""
    task_id = tasks.create(0, PLAIN, notify_within_seconds=60, **more)
    tasks.run(5 * SECOND)
    assert tasks.state(task_id) == "running"
    return task_id


def accepting() -> Tasks:
    """Tasks whose targets accept the work, and report its end later."""
    tasks = Tasks()
    tasks.target = lambda _phase, _context: Accepted()
    return tasks


def test_a_link_completes_its_own_attempt_once() -> None:
    """A link completes the attempt with a result; afterwards it is refused, as is a link to fail the attempt."""
    with accepting() as tasks:
        task_id = deferred(tasks)
        done, failed = link_to(tasks, task_id, "complete", takes_payload=True), link_to(tasks, task_id, "fail")
        assert use(tasks, done, payload={"rows": 3}) == (200, "complete")
        tasks.run(5 * SECOND)
        assert tasks.ask("GET", f"/v1/tasks/{task_id}").body["result"] == {"rows": 3}
        assert use(tasks, done, payload={"rows": 3}) == (410, "link_ended")
        assert use(tasks, failed) == (410, "link_ended")


def test_a_link_that_reports_a_failure_fails_the_task_without_retry() -> None:
    """A link that reports a failure fails the task without a retry, with the given reason as the error message."""
    with accepting() as tasks:
        task_id = deferred(tasks)
        assert use(tasks, link_to(tasks, task_id, "complete", "fail"), action="fail", reason="no stock") == (
            200,
            "fail",
        )
        tasks.run(5 * SECOND)
        task = tasks.ask("GET", f"/v1/tasks/{task_id}").body
        assert (task["state"], task["error"]) == ("failed", {"type": "ReportedByLink", "message": "no stock"})


def test_a_link_to_an_ended_attempt_is_rejected() -> None:
    """A link to an ended attempt is refused, even if the next attempt is also waiting for a report."""
    with accepting() as tasks:
        task_id = deferred(tasks, retry={"max_attempts": 3, "initial_seconds": 1})
        old = link_to(tasks, task_id, "complete")
        tasks.run(3 * MINUTE)
        assert (tasks.state(task_id), tasks.record(task_id).fence > 1) == ("running", True)
        assert use(tasks, old) == (410, "link_ended")
        assert use(tasks, link_to(tasks, task_id, "complete")) == (200, "complete")


def test_a_decision_by_link_survives_a_lost_response() -> None:
    """If the function dies after the decision, the decision is kept, and a repeated request marks the link as used."""
    with Graphs() as graphs:
        task_id = waiting(graphs).id.text
        path = link_to(graphs, task_id, "approve")
        graphs.topologies.signalled.add((task_id, True))

        def die_at_the_note(call: Call) -> None:
            if call.operation == "update_item" and call.request["Key"]["s"]["S"].startswith("link#"):
                graphs.before_call = None
                call.machine.die()

        graphs.before_call = die_at_the_note
        graphs.send("POST", path, {})
        graphs.run(MINUTE)
        assert graphs.before_call is None
        assert graphs.record(task_id).state == "succeeded"
        assert use(graphs, path) == (200, "approve")
        assert use(graphs, path) == (410, "link_ended")
