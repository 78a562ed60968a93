"""Tests that `duetime verify` reports every fault in a deployment as a failed check."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from duetime_client.commands.app import app
from duetime_client.commands.clock import Clock
from duetime_client.verification import findings
from duetime_client.verification.access_denied_logs import denied_grants
from duetime_client.verification.findings import Execution, Finding, Verdict
from duetime_client.verification.verification_plan import Limits, Plan
from tests.client.deployment import NOW, problem

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    from typer.testing import Result

    from tests.client.deployment import Deployment

GOOD = [Execution(f"t{number}", 1000, "succeeded", attempts=1, started_ms=1040, ended_ms=1050) for number in range(20)]
FIRST = GOOD[0]
LIMITS = Limits()


def with_first(**changes: object) -> list[Execution]:
    """Return good executions with changes to the first execution."""
    return [replace(FIRST, **changes), *GOOD[1:]]  # type: ignore[arg-type]  # fields


def lateness(executions: list[Execution]) -> Finding:
    """Return the result of checking how late the executions started."""
    return findings.on_time("on time", executions, LIMITS)


@pytest.mark.parametrize(
    ("judge", "changes"),
    [
        (findings.lost, {"state": "running"}),
        (findings.lost, {"state": "unknown", "started_ms": None}),
        (findings.wrong_outcomes, {"state": "failed"}),
        (findings.repeated, {"attempts": 2}),
        (findings.early, {"started_ms": 999}),
        (lateness, {"started_ms": 2001}),
        (lateness, {"started_ms": 11_001}),
    ],
)
def test_one_lost_doubled_early_or_late_task_fails_the_check(
    judge: Callable[[list[Execution]], Finding], changes: dict[str, object]
) -> None:
    """A lost, doubled, early or late task among twenty, or a task with a different outcome, fails the check."""
    assert judge(GOOD).verdict is Verdict.PASSED
    broken = judge(with_first(**changes))
    assert broken.verdict is Verdict.FAILED
    assert broken.figure


def test_a_retried_task_is_not_reported_as_doubled() -> None:
    """A retry after a failure is expected, but an additional or a missing attempt fails a check."""
    retried = replace(FIRST, attempts=3, expected_attempts=3)
    assert findings.repeated([retried]).verdict is findings.retried([retried]).verdict is Verdict.PASSED
    assert findings.repeated([replace(retried, attempts=4)]).verdict is Verdict.FAILED
    assert findings.retried([replace(retried, attempts=2)]).verdict is Verdict.FAILED
    assert findings.retried([replace(retried, state="failed")]).verdict is Verdict.FAILED


def test_a_small_delay_of_half_of_the_tasks_exceeds_the_median_limit() -> None:
    """The median has a separate limit, so the check can fail even if every task is less than a second late."""
    slow = [replace(each, started_ms=1300) for each in GOOD[:11]]
    assert lateness([*slow, *GOOD[11:]]).verdict is Verdict.FAILED
    assert lateness([*slow[:9], *GOOD[9:]]).verdict is Verdict.PASSED


def test_a_cancelled_task_that_ran_fails_the_check() -> None:
    """A cancelled task that ran fails the check even if its final state is correct."""
    cancelled = replace(FIRST, state="cancelled", expected="cancelled", attempts=0, started_ms=None)
    assert findings.cancelled([cancelled]).verdict is Verdict.PASSED
    assert findings.cancelled([replace(cancelled, attempts=1)]).verdict is Verdict.FAILED
    assert findings.cancelled([replace(cancelled, state="scheduled")]).verdict is Verdict.FAILED


def test_overlapping_holders_of_a_lock_fail_the_check() -> None:
    """Two lock holders whose times overlap by a millisecond fail the check."""
    one, two = replace(FIRST, started_ms=1000, ended_ms=1300), replace(FIRST, started_ms=1300, ended_ms=1600)
    assert findings.exclusive([two, one]).verdict is Verdict.PASSED
    assert findings.exclusive([one, replace(two, started_ms=1299)]).verdict is Verdict.FAILED


def test_a_node_started_before_its_parent_ended_fails_the_check() -> None:
    """A node that started before its parent ended, or whose start is unknown, fails the check."""
    parent, child = replace(FIRST, started_ms=1000, ended_ms=1300), replace(FIRST, started_ms=1300, ended_ms=1400)
    edges = [("p", "c")]
    assert findings.in_order({"p": parent, "c": child}, edges).verdict is Verdict.PASSED
    for wrong in (1299, None):
        nodes = {"p": parent, "c": replace(child, started_ms=wrong)}
        assert findings.in_order(nodes, edges).verdict is Verdict.FAILED


def test_a_missed_doubled_or_extra_run_of_a_schedule_fails_the_check() -> None:
    """The check fails unless each of the schedule's times runs exactly once and nothing else runs."""
    expected = [1000, 2000, 3000]
    ran = [replace(FIRST, due_ms=at) for at in expected]
    assert findings.recurring(expected, ran).verdict is Verdict.PASSED
    for wrong in (
        ran[:2],
        [*ran, ran[0]],
        [*ran, replace(FIRST, due_ms=4000)],
        [*ran[:2], replace(ran[2], state="failed")],
    ):
        assert findings.recurring(expected, wrong).verdict is Verdict.FAILED


def test_a_pulled_task_leased_twice_or_never_fails_the_check() -> None:
    """A pulled task that was leased twice, or never, on the verifying machine fails the check."""
    assert findings.pulled(["a", "b"], {"a": 1, "b": 1}).verdict is Verdict.PASSED
    assert findings.pulled(["a", "b"], {"a": 2, "b": 1}).verdict is Verdict.FAILED
    assert findings.pulled(["a", "b"], {"a": 1}).verdict is Verdict.FAILED


def test_a_key_that_creates_two_tasks_fails_the_check() -> None:
    """An idempotency key that creates two tasks or accepts a different body fails the check."""
    assert findings.idempotent(["a", "a"], 422).verdict is Verdict.PASSED
    assert findings.idempotent(["a", "b"], 422).verdict is Verdict.FAILED
    assert findings.idempotent(["a", "a"], 201).verdict is Verdict.FAILED


@pytest.mark.parametrize(
    "found",
    [
        findings.lost([]),
        findings.on_time("on time", [replace(FIRST, started_ms=None)], LIMITS),
        findings.exclusive([replace(FIRST, started_ms=None)]),
        denied_grants("", 0),
    ],
)
def test_the_report_gives_the_reason_for_unchecked_guarantees(found: Finding) -> None:
    """The report gives the reason why a guarantee was not checked."""
    assert found.verdict is Verdict.UNMEASURED
    assert found.figure


def test_a_verification_shows_its_cost_and_requires_confirmation(
    duetime: Callable[..., Result], deployment: Deployment
) -> None:
    """Without confirmation, no request is sent."""
    ended = duetime("verify", typed="n\n")
    assert ended.exit_code == 1
    assert f"about {Plan().total} tasks" in ended.stderr
    assert f"${Plan().dollars:.2f}" in ended.stderr
    assert deployment.received == []


def test_a_deployment_without_probes_is_reported(duetime: Callable[..., Result], deployment: Deployment) -> None:
    """If the API rejects the probe's type, the command prints the reason and leaves nothing behind."""
    fault = {"field": "type", "reason": "'duetime.probe' is not known to this deployment"}
    deployment.scripted.append(problem(422, "fields_invalid", "1 field is invalid", fault))
    ended = duetime("verify", "--yes")
    assert ended.exit_code == 1
    assert fault["reason"] in ended.stderr
    assert {task["state"] for task in deployment.tasks.values()} == {"cancelled"}


def test_an_interrupted_verification_cancels_the_created_tasks(deployment: Deployment) -> None:
    """An interrupt stops the verification with the shell's exit code and cancels the created tasks."""
    asked: list[datetime] = []

    def now() -> datetime:
        asked.append(NOW)
        if len(asked) > 1:
            raise KeyboardInterrupt
        return NOW

    clock = Clock(now=now, sleep=lambda _: None)
    ended = CliRunner().invoke(app, ["verify", "--yes", "--url", deployment.url], obj=clock)
    assert ended.exit_code == 130
    assert [task["state"] for task in deployment.tasks.values()] == ["cancelled"]
