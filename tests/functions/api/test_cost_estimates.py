from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime.environment_variables import Variable
from duetime_common.cost_estimate import Workload, estimate
from duetime_common.prices import AS_OF, DEFAULT_REGION
from tests.functions.api.gateway import Gateway

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.fakes.session import FakeSession

TASK = {"type": "report", "allow_unknown_type": True}
HOURLY = {"name": "hourly", "cron": "0 * * * *", "task": TASK}


def lines_by_client(*workloads: Workload) -> list[dict[str, Any]]:
    """The lines of the estimate that `duetime cost estimate` calculates for these workloads, without unused lines."""
    parts: dict[str, dict[str, Any]] = {}
    for workload in workloads:
        for line in estimate(workload).lines:
            before = parts.setdefault(line.part, {"part": line.part, "quantity": 0, "unit": line.unit, "dollars": 0})
            before["quantity"] += line.quantity
            before["dollars"] += line.dollars
    return [part for part in parts.values() if part["quantity"]]


def mix(tasks: float = 1, **fields: Any) -> Workload:  # noqa: ANN401 - fields of a workload
    """A workload in a deployment without a summary and without traces, as in these tests."""
    return Workload(tasks, has_summary=False, has_lists=False, **fields)


def estimated(api: Gateway, path: str, body: object, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - see `send`
    """The estimate in the response to a creation."""
    answer = api.send("POST", path, body, query="estimate=1", **more)
    assert answer.status in (200, 201), answer.body
    found: dict[str, Any] = answer.body["estimate"]
    assert found["dollars"] == pytest.approx(sum(line["dollars"] for line in found["lines"]))
    return found


def assert_is(found: dict[str, Any], *workloads: Workload) -> None:
    """Assert that an estimate equals the client's calculation for these workloads."""
    assert found["tasks"] == sum(workload.tasks for workload in workloads)
    wanted = lines_by_client(*workloads)
    assert [line["part"] for line in found["lines"]] == [line["part"] for line in wanted]
    for line, same in zip(found["lines"], wanted, strict=True):
        assert line == pytest.approx(same)


def test_a_tasks_estimate_equals_the_clients_estimate(api: Gateway) -> None:
    """The API's and the client's estimates agree for tasks due now or later, with a key, or with other options."""
    found = estimated(api, "/v1/tasks", TASK)
    assert_is(found, mix(ahead=False))
    assert (found["days"], found["left_out"]) == (None, [])
    assert (found["region"], found["prices_as_of"]) == (DEFAULT_REGION, AS_OF)
    later = estimated(api, "/v1/tasks", {**TASK, "delay_seconds": 3_600}, headers={"Idempotency-Key": "k"})
    assert_is(later, mix(keys=True))
    options = {"lock": {"key": "db"}, "rate": {"key": "api", "limit": 5}, "callback_url": "https://example.org/"}
    dear = estimated(api, "/v1/tasks", {**TASK, **options})
    assert_is(dear, mix(ahead=False, extra_writes=3), mix(ahead=False, per_request=0, extra_writes=1))


def test_an_estimate_is_returned_only_on_request_and_not_stored(api: Gateway, session: FakeSession) -> None:
    """An estimate is returned only on request, costs no AWS call, and is not stored with the task."""
    api.create()
    calls: list[list[str]] = []
    session.heard = lambda operation, _: calls[-1].append(operation)
    for query in ("", "estimate=0", "estimate=true"):
        calls.append([])
        made = api.send("POST", "/v1/tasks", TASK, query=query)
        calls.append([])
        assert ("estimate" in made.body) == (query == "estimate=true")
        assert "estimate" not in api.send("GET", f"/v1/tasks/{made.body['id']}").body
    assert calls[0] == calls[2] == calls[4] != []


def test_a_batch_is_estimated_as_a_whole(api: Gateway) -> None:
    """In a batch's estimate, tasks that are due together share a worker, and refused tasks cost nothing."""
    late = {**TASK, "delay_seconds": 3_600}
    found = estimated(api, "/v1/tasks/batch", {"tasks": [TASK, late, TASK, {"type": ""}]})
    assert_is(found, mix(2, together=2, per_request=3, ahead=False), mix(per_request=3))
    nothing = estimated(api, "/v1/tasks/batch", {"tasks": [{"type": ""}]})
    assert (nothing["dollars"], nothing["tasks"], nothing["lines"]) == (0, 0, [])


def test_a_schedule_is_estimated_for_a_month(api: Gateway) -> None:
    """A schedule's estimate covers its occurrences in a month, their expansions and the overlap policy.

    A permanent schedule has no estimate, because its number of runs is unknown.
    """
    found = estimated(api, "/v1/schedules", {**HOURLY, "overlap": "allow_all"})
    assert found["days"] == 30
    assert_is(found, mix(720, per_request=0, extra_writes=2))
    often = {"name": "often", "rate": "1 minute", "remaining_runs": 600, "overlap": "skip", "task": TASK}
    assert_is(estimated(api, "/v1/schedules", often), mix(600, per_request=0, extra_writes=2 + 1))
    permanent = {"name": "permanent", "permanent": {"gap_seconds": 5}, "task": TASK}
    assert api.send("POST", "/v1/schedules", permanent, query="estimate=1").body["estimate"] is None


def test_a_topology_is_estimated_with_its_nodes(api: Gateway) -> None:
    """A topology's estimate includes its own task, its state transitions, and each node with its expected duration.

    The estimate omits a map's items after the first item, and nodes that are not in the request.
    """
    nodes = {"a": TASK, "b": {**TASK, "depends_on": ["a"], "expected_seconds": 30}}
    found = estimated(api, "/v1/topologies", {"nodes": nodes})
    own = mix(ahead=False, extra_writes=8, transitions=7)
    first = mix(ahead=False, per_request=0, extra_writes=2)
    assert_is(found, own, first, mix(ahead=False, per_request=0, extra_writes=4, seconds=30))
    mapped = {"a": TASK, "b": {**TASK, "depends_on": ["a"], "map": {"over": "parents.a.result"}}}
    found = estimated(api, "/v1/topologies", {"nodes": mapped})
    assert (found["tasks"], found["left_out"]) == (4, ["the items of a map besides the first"])
    task = {"type": "graph", "target": {"kind": "topology"}, "payload": {"nodes": nodes}}
    found = estimated(api, "/v1/tasks", task)
    assert_is(found, mix(ahead=False, extra_writes=8, transitions=6))
    assert found["left_out"] == ["the nodes of a topology whose graph is in a payload or a definition"]


def test_the_settings_and_the_region_affect_the_estimate(compose: Callable[[], None], environ: dict[str, str]) -> None:
    """The settings and the Region affect the estimate; for an unknown Region, the default Region's prices are used."""
    environ |= {
        Variable.REGION: "eu-west-1",
        Variable.PRECISION: "relaxed",
        Variable.SUMMARY_SPREAD: "1",
        Variable.TRACES: "xray",
        Variable.PULLED_QUEUES: '{"pulled": "https://sqs.example.org/pulled"}',
        Variable.PULLERS: '{"pulled": ["*"]}',
    }
    compose()
    found = estimated(Gateway(), "/v1/tasks", TASK)
    assert_is(found, Workload(1, ahead=False, precision="relaxed", has_traces=True, region="eu-west-1"))
    assert found["region"] == "eu-west-1"
    pulled = estimated(Gateway(), "/v1/tasks", {"type": "pulled", "delay_seconds": 3_600, "expires_seconds": 60})
    assert_is(
        pulled, Workload(1, precision="relaxed", has_traces=True, region="eu-west-1", pulled=True, extra_writes=1)
    )
    environ[Variable.REGION] = "eu-central-1"
    assert estimated(Gateway(), "/v1/tasks", TASK)["region"] == DEFAULT_REGION


@pytest.mark.parametrize("path", ["/v1/tasks", "/v1/tasks/batch", "/v1/schedules", "/v1/topologies"])
def test_an_invalid_value_of_estimate_is_rejected(api: Gateway, path: str) -> None:
    """An invalid value of `estimate` is refused by name."""
    answer = api.send("POST", path, {}, query="estimate=only")
    assert (answer.status, answer.faults) == (400, {"estimate": "should be 1 (true) or 0 (false)"})
