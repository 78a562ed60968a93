"""Tests the testing kit's targets, which are handlers, the test's HTTP endpoints, pull workers and topologies."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from duetime_client import InvalidRequest
from duetime_testing import HttpReply, NotJson

if TYPE_CHECKING:
    from duetime.handlers import Context
    from duetime_client import EventTarget
    from duetime_testing import Duetime, HttpRequest

URL = "https://worker.example.org/do"


def test_each_phase_calls_its_method_of_the_handler_class(duetime: Duetime) -> None:
    """Each phase calls the class's method with the phase's name."""

    class Transfer:
        def prepare(self, _context: Context, _payload: object) -> None:
            """Get ready."""

        def run(self, _context: Context, payload: object) -> object:
            """Do it."""
            return payload

        def clean(self, _context: Context, _payload: object) -> None:
            """Put away."""

    duetime.register("transfer", Transfer)
    duetime.client.tasks.create("transfer", payload=[1])
    duetime.run_until_idle()
    assert [each.phase for each in duetime.executions] == ["prepare", "run", "clean"]
    duetime.assert_ran("transfer", times=1, payload=[1])


def test_handlers_are_registered_for_one_test(duetime: Duetime) -> None:
    """A type that a different test has registered is unknown in this test."""
    task = duetime.client.tasks.create("transfer")
    duetime.run_until_idle()
    failed = duetime.client.tasks.get(task.id)
    assert failed.error is not None
    assert (failed.state, failed.error.type) == ("failed", "HandlerUnknown")


def test_a_test_can_answer_http_calls(duetime: Duetime) -> None:
    """An HTTP call arrives with its payload and is retried after a failure, and then the callback arrives."""
    answers = [HttpReply(503), HttpReply(200, {"pages": 3})]
    duetime.http.respond_with(URL, lambda _request: answers.pop(0))
    duetime.http.respond("https://hooks.example.org/")
    task = duetime.client.tasks.create(
        "render", payload={"a": 1}, target={"kind": "http", "url": URL}, callback_url="https://hooks.example.org/done"
    )
    duetime.run_until_idle()
    assert duetime.client.tasks.get(task.id).result == {"pages": 3}
    called: list[HttpRequest] = duetime.http.requests
    assert [each.url.split("?")[0] for each in called] == [URL, URL, "https://hooks.example.org/done"]
    assert [each.json["payload"] for each in called[:2]] == [{"a": 1}] * 2
    assert called[2].json["data"]["state"] == "succeeded"
    duetime.assert_ran("render", times=2)


def test_a_call_to_an_undefined_endpoint_fails_with_404(duetime: Duetime) -> None:
    """A call to an endpoint that the test does not define fails with status 404."""
    task = duetime.client.tasks.create("render", target={"kind": "http", "url": URL}, retry={"max_attempts": 1})
    duetime.run_until_idle()
    failed = duetime.client.tasks.get(task.id)
    assert failed.error is not None
    assert "404" in f"{failed.error.type} {failed.error.message}"


def test_a_deferred_task_waits_for_the_notification(duetime: Duetime) -> None:
    """While a deferred task waits for its notification, the account counts as idle."""
    duetime.register("slow", lambda context, _payload: context.defer())
    task = duetime.client.tasks.create("slow")
    duetime.run_until_idle()
    waiting = duetime.client.tasks.get(task.id)
    assert (waiting.state, waiting.awaiting_notification) == ("running", True)
    duetime.client.tasks.notify_success(task.id, waiting.fence, {"ok": True})
    assert duetime.client.tasks.get(task.id).result == {"ok": True}


def test_a_test_can_lease_tasks_of_pulled_types(duetime: Duetime) -> None:
    """A test leases tasks as a worker does; a task that waits for a pull worker counts as idle."""
    duetime.pull("vm.backup")
    task = duetime.client.tasks.create("vm.backup", payload={"db": 17})
    duetime.run_until_idle()
    (lease,) = duetime.client.leases.acquire(["vm.backup"], wait_seconds=5)
    assert lease.task.payload == {"db": 17}
    duetime.client.leases.complete(lease.id, {"bytes": 9})
    assert duetime.client.tasks.get(task.id).state == "succeeded"


def test_a_lease_is_for_the_requested_type(duetime: Duetime) -> None:
    """A lease is for the requested type, and lasts for the requested time on the account's clock."""
    for task_type in ("vm.backup", "vm.restore"):
        duetime.pull(task_type)
        duetime.client.tasks.create(task_type)
    for task_type in ("vm.restore", "vm.backup"):
        (lease,) = duetime.client.leases.acquire([task_type], wait_seconds=5, lease_seconds=40)
        assert (lease.task.type, lease.lasts) == (task_type, timedelta(seconds=40))
        duetime.client.leases.complete(lease.id)
        assert duetime.client.tasks.get(lease.task.id).state == "succeeded"


def test_a_lease_of_a_pull_worker_expires(duetime: Duetime) -> None:
    """A worker that disappears loses its lease, and another worker gets the next attempt."""
    duetime.pull("vm.backup")
    duetime.client.tasks.create("vm.backup")
    (first,) = duetime.client.leases.acquire(["vm.backup"], wait_seconds=5, lease_seconds=30)
    duetime.client.leases.renew(first.id)
    duetime.advance(minutes=10)
    (second,) = duetime.client.leases.acquire(["vm.backup"], wait_seconds=5)
    assert (first.task.attempt, second.task.attempt) == (1, 2)


def test_a_topology_runs_in_the_order_of_its_dependencies(duetime: Duetime) -> None:
    """A topology's nodes run after their parents have ended, and get the parents' results."""
    order: list[tuple[str, Any]] = []

    def work(context: Context, payload: str) -> str:
        order.append((payload, context.inputs))
        return payload.upper()

    duetime.register("step", work)
    nodes = {
        "extract": {"type": "step", "payload": "extract"},
        "left": {"type": "step", "payload": "left", "depends_on": ["extract"]},
        "right": {"type": "step", "payload": "right", "depends_on": ["extract"]},
        "load": {"type": "step", "payload": "load", "depends_on": ["left", "right"], "inputs": ["left", "right"]},
    }
    task = duetime.client.topologies.create({"name": "etl", "nodes": nodes})
    duetime.run_until_idle()
    topology = duetime.client.topologies.get(task.id)
    assert topology.state == "succeeded"
    assert order[0][0] == "extract"
    assert order[-1] == ("load", {"left": "LEFT", "right": "RIGHT"})
    duetime.assert_ran("step", times=4)


def test_a_topology_waiting_for_a_pulled_node_counts_as_idle(duetime: Duetime) -> None:
    """While only a pull worker can continue the topology, the account is idle; then the other nodes run."""
    duetime.pull("vm.backup")
    duetime.register("step", lambda _context, _payload: None)
    nodes = {"backup": {"type": "vm.backup"}, "mail": {"type": "step", "depends_on": ["backup"]}}
    task = duetime.client.topologies.create({"nodes": nodes})
    duetime.run_until_idle()
    (lease,) = duetime.client.leases.acquire(["vm.backup"], wait_seconds=5)
    duetime.client.leases.complete(lease.id)
    duetime.run_until_idle()
    assert duetime.client.topologies.get(task.id).state == "succeeded"


@pytest.mark.duetime(mode="record")
def test_in_record_mode_nothing_runs(duetime: Duetime) -> None:
    """In the mode `record`, tasks are created and can be asserted, but no handler is called as time passes."""
    duetime.register("mail", lambda _context, _payload: pytest.fail("ran"))
    duetime.client.tasks.create("mail", payload={"to": "ann"}, delay_seconds=60)
    duetime.run_until_idle()
    duetime.advance(days=1)
    task = duetime.assert_created("mail", times=1, payload={"to": "ann"})
    assert task.state == "scheduled"
    duetime.refute_created("mail", payload={"to": "bob"})
    duetime.refute_created("other")
    with pytest.raises(ValueError, match="refute_created"):
        duetime.assert_created("other", times=0)
    duetime.assert_ran("mail", times=0)


@pytest.mark.duetime(mode="inline", start="2027-02-03T04:05:06+00:00")
def test_in_inline_mode_a_task_runs_within_its_creation(duetime: Duetime) -> None:
    """In the mode `inline`, a task has already ended when its creation returns, unless the task is due later."""
    duetime.register("mail", lambda _context, payload: payload)
    assert duetime.now.isoformat() == "2027-02-03T04:05:06+00:00"
    now, later = (duetime.client.tasks.create("mail", delay_seconds=delay) for delay in (0, 60))
    assert duetime.client.tasks.get(now.id).state == "succeeded"
    assert duetime.client.tasks.get(later.id).state == "scheduled"


def test_a_mode_can_change_within_a_test(duetime: Duetime) -> None:
    """Recorded tasks run when the mode is set to virtual again."""
    duetime.register("mail", lambda _context, _payload: None)
    duetime.mode = "record"
    duetime.client.tasks.create("mail")
    duetime.advance(minutes=1)
    duetime.assert_ran("mail", times=0)
    duetime.mode = "virtual"
    duetime.run_until_idle()
    duetime.assert_ran("mail", times=1)


def test_performing_calls_one_handler_with_a_context(duetime: Duetime) -> None:
    """`perform` calls a handler without a scheduler, passes its errors to the test, and records its reports."""

    def work(context: Context, payload: dict[str, int]) -> dict[str, object]:
        context.progress(50, "half way")
        context.heartbeat()
        context.stop_if_requested()
        if not payload:
            raise LookupError("nothing to do")
        return {"attempt": context.attempt, "from": context.checkpoint}

    duetime.register("work", work)
    call = duetime.call("work", attempt=3, checkpoint={"row": 7})
    assert duetime.perform("work", {"a": 1}, call=call) == {"attempt": 3, "from": {"row": 7}}
    assert (call.progress, call.heartbeats) == ([(50, "half way")], 1)
    with pytest.raises(LookupError, match="nothing to do"):
        duetime.perform("work", {})
    with pytest.raises(LookupError, match="no handler is registered for the type 'other'"):
        duetime.perform("other")


@pytest.mark.parametrize("value", [(1, 2), {1: "a"}, float("nan"), object(), {"at": b"x"}])
def test_perform_rejects_values_that_json_changes(duetime: Duetime, value: object) -> None:
    """`perform` raises an error if JSON would change a payload or result, so that tests notice the change."""
    duetime.register("give", lambda _context, _payload: value)
    duetime.register("take", lambda _context, _payload: None)
    with pytest.raises(NotJson, match="the payload of 'take'"):
        duetime.perform("take", value)
    with pytest.raises(NotJson, match="the result of 'give'"):
        duetime.perform("give")


def test_a_failed_assertion_lists_runs_and_waiting_tasks(duetime: Duetime) -> None:
    """A failed assertion's message lists runs with their times, waiting tasks, and skipped tasks with reasons."""
    duetime.at("2027-03-27T22:00+00:00")
    duetime.register("report", lambda _context, _payload: None)
    duetime.client.schedules.create(
        name="nightly", cron="30 1 * * *", timezone="Europe/London", task={"type": "report", "payload": "x"}
    )
    duetime.client.tasks.create("report", delay_seconds=10 * 86_400, payload="y")
    duetime.advance(days=3)
    with pytest.raises(AssertionError) as told:
        duetime.assert_ran("report", times=3)
    for line in (
        "'report' ran twice, not 3 times",
        "It is 2027-03-30 22:00:00+00:00",
        "2027-03-29T00:30:00Z  report, attempt 1, succeeded  (due 2027-03-29T00:30:00Z",
        "report scheduled, due 2027-04-06T22:00:00+00:00",
        "nightly: 2027-03-28T02:00:00+01:00 skipped: 01:30 does not exist on 2027-03-28 in Europe/London: skipped",
    ):
        assert line in str(told.value), str(told.value)
    with pytest.raises(AssertionError, match="0 occurrences of 'nightly' were skipped for 'overlap'"):
        duetime.assert_skipped("nightly", reason="overlap")
    with pytest.raises(AssertionError, match=r"tasks of type 'report' were created, not 1(?s:.)*payload 'y'"):
        duetime.assert_created("report", times=1, payload="z")


def test_an_unknown_type_is_rejected_as_in_a_deployment(duetime: Duetime) -> None:
    """Once handlers are registered, types without a handler must be announced, be pulled or have another target."""
    assert duetime.client.tasks.create("raport", delay_seconds=60).state == "scheduled"
    duetime.register("report", lambda _context, _payload: None)
    with pytest.raises(InvalidRequest, match="'raport' is not known to this deployment"):
        duetime.client.tasks.create("raport")
    with pytest.raises(InvalidRequest, match="'raport'"):
        duetime.client.schedules.create(name="daily", cron="0 12 * * *", task={"type": "raport"})
    duetime.client.tasks.create("raport", allow_unknown_type=True, delay_seconds=60)
    duetime.client.tasks.create("raport", target={"kind": "http", "url": URL}, delay_seconds=60)
    duetime.pull("raport")
    duetime.client.tasks.create("raport")
    duetime.client.tasks.create("report")


@pytest.mark.parametrize("delay", [0, 100])
def test_tasks_due_at_the_same_time_run_by_priority(duetime: Duetime, delay: int) -> None:
    """Tasks that are due at the same time run in the order of priority, however many there are."""
    ran: list[object] = []
    duetime.mode = "record"
    duetime.register("report", lambda _context, payload: ran.append(payload))
    due = duetime.now + timedelta(seconds=delay)
    for priority in (*["low"] * 30, *["normal"] * 12, *["high"] * 3):
        duetime.client.tasks.create("report", payload=priority, priority=priority, due_at=due)  # type: ignore[arg-type]  # valid
    duetime.mode = "virtual"
    duetime.advance(minutes=5)
    assert ran == [*["high"] * 3, *["normal"] * 12, *["low"] * 30]


def test_skips_have_short_names(duetime: Duetime) -> None:
    """Short names distinguish runs skipped because of an overlap from runs skipped because of a calendar."""
    duetime.register("long", lambda _context, _payload: duetime.sleep(90))
    duetime.register("quick", lambda _context, _payload: None)
    duetime.client.schedules.create(name="minutely", rate="1m", task={"type": "long", "timeout_seconds": 600})
    duetime.advance(minutes=5)
    duetime.assert_skipped("minutely", reason="overlap")
    duetime.client.schedules.delete("minutely")
    duetime.client.calendars.put("closed", dates={"2026-01-06": "epiphany"})
    duetime.client.schedules.create(name="daily", cron="0 12 * * *", calendars=["closed"], task={"type": "quick"})
    duetime.advance(days=2)
    duetime.assert_skipped("daily", reason="epiphany", times=1)


@pytest.mark.usefixtures("duetime_aws")
def test_aws_calls_of_a_handler_go_to_moto(duetime: Duetime) -> None:
    """boto3 calls in a handler go to moto, unlike duetime's own calls."""
    import boto3  # noqa: PLC0415 - the handler's own

    def store(_context: Context, payload: str) -> str:
        s3 = boto3.client("s3")
        s3.create_bucket(Bucket="reports")
        s3.put_object(Bucket="reports", Key="one", Body=payload.encode())
        return str(s3.get_object(Bucket="reports", Key="one")["Body"].read(), "utf-8")

    duetime.register("store", store)
    task = duetime.client.tasks.create("store", payload="text")
    duetime.run_until_idle()
    assert duetime.client.tasks.get(task.id).result == "text"
    assert not boto3.client("dynamodb").list_tables()["TableNames"]


def test_a_signal_ends_a_task_that_waits_for_an_event(duetime: Duetime) -> None:
    """The test's client sends a signal, whose payload becomes the waiting task's result."""
    target: EventTarget = {"kind": "wait_for_event", "event": "order.paid", "key": "o-17"}
    task = duetime.client.tasks.create("payment", target=target)
    duetime.advance(minutes=1)
    assert duetime.client.tasks.get(task.id).state == "waiting"
    assert duetime.client.signals.send("order.paid", "o-17", {"amount": 17}).woken == 1
    duetime.advance(seconds=5)
    ended = duetime.client.tasks.get(task.id)
    assert (ended.state, ended.result) == ("succeeded", {"amount": 17})
