from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from duetime_local.demo_receiver import Execution
from duetime_local.demo_report import Lateness, count, lateness


def execution(task_id: str, start: int, end: int, *, succeeded: bool = True, attempt: int = 1) -> Execution:
    """Return an execution with default values for all other fields."""
    return Execution(task_id, attempt, attempt, start, end, succeeded)


def test_a_task_that_ran_once_on_time_counts_only_as_succeeded() -> None:
    """In a clean run, no task is counted as retried, lost, doubled or early."""
    figures = count({"a": 1000}, [execution("a", 1003, 1010)], {"a": "succeeded"}, began_ms=0)

    assert figures.promises_kept
    assert figures.as_json() == {
        "accepted": 1,
        "succeeded": 1,
        "retried": 0,
        "failed": 0,
        "lost": 0,
        "doubled": 0,
        "early": 0,
        "lateness_ms": {"p50": 3, "p99": 3, "max": 3},
        "seconds_to_first_task": 1.0,
    }


def test_a_success_that_the_receiver_never_saw_is_lost() -> None:
    """A task that only the API reports as successful counts as lost."""
    figures = count({"a": 1000, "b": 1000}, [execution("a", 1000, 1001)], {"a": "succeeded", "b": "succeeded"}, 0)

    assert (figures.succeeded, figures.lost) == (1, 1)
    assert not figures.promises_kept


def test_a_success_that_the_api_does_not_know_is_lost() -> None:
    """A task that ran but has no outcome in its record counts as lost."""
    figures = count({"a": 1000}, [execution("a", 1000, 1001)], {"a": "running"}, began_ms=0)

    assert figures.lost == 1


def test_a_failed_task_does_not_count_as_lost() -> None:
    """A task that failed has an outcome and does not count as lost."""
    figures = count({"a": 1000}, [execution("a", 1000, 1001, succeeded=False)], {"a": "failed"}, began_ms=0)

    assert (figures.failed, figures.lost) == (1, 0)


def test_a_retry_after_a_failure_does_not_count_as_doubled() -> None:
    """Attempts that run one after the other are counted as retries."""
    ran = [execution("a", 1000, 1010, succeeded=False), execution("a", 1500, 1510, attempt=2)]

    figures = count({"a": 1000}, ran, {"a": "succeeded"}, began_ms=0)

    assert (figures.retried, figures.doubled) == (1, 0)


def test_overlapping_executions_are_doubled() -> None:
    """An execution that starts before the end of the previous execution counts as doubled."""
    ran = [execution("a", 1000, 1600, succeeded=False), execution("a", 1500, 1510, attempt=2)]

    figures = count({"a": 1000}, ran, {"a": "succeeded"}, began_ms=0)

    assert figures.doubled == 1
    assert not figures.promises_kept


def test_an_execution_after_a_success_is_doubled() -> None:
    """An execution after a successful execution counts as doubled, no matter how much later it runs."""
    ran = [execution("a", 1000, 1010), execution("a", 9000, 9010, attempt=2)]

    assert count({"a": 1000}, ran, {"a": "succeeded"}, began_ms=0).doubled == 1


def test_a_repeated_report_counts_as_one_execution() -> None:
    """A repeated report of an execution does not count as a second execution."""
    figures = count({"a": 1000}, [execution("a", 1000, 1010)] * 2, {"a": "succeeded"}, began_ms=0)

    assert (figures.retried, figures.doubled) == (0, 0)


def test_a_start_before_the_due_time_is_early() -> None:
    """A start one millisecond before the due time counts as early."""
    assert count({"a": 1000}, [execution("a", 999, 1010)], {"a": "succeeded"}, began_ms=0).early == 1


def test_executions_of_other_runs_are_not_counted() -> None:
    """Tasks that this demo did not create do not change its figures."""
    figures = count({"a": 1000}, [execution("a", 1000, 1010), execution("b", 1, 2)], {"a": "succeeded"}, began_ms=0)

    assert (figures.accepted, figures.early) == (1, 0)


def test_percentiles_are_values_that_were_measured() -> None:
    """The percentiles of a hundred values are the 50th and the 99th value."""
    assert lateness(range(1, 101)) == Lateness(50, 99, 100)


@given(st.lists(st.integers(0, 10_000), min_size=1))
def test_percentiles_are_ordered_measured_values(values: list[int]) -> None:
    """For any values, p50 <= p99 <= max, and each of these values occurred."""
    measured = lateness(values)

    assert measured.p50 <= measured.p99 <= measured.max
    assert {measured.p50, measured.p99, measured.max} <= set(values)
