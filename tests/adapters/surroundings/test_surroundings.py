from __future__ import annotations

import json
import subprocess
import sys
import threading
from functools import partial

import pytest

from duetime.adapters.runtime.process import SystemClock, SystemRandom, Threads
from duetime.adapters.runtime.telemetry import PowertoolsTelemetry
from duetime.domain.times import SECOND


def test_a_sleep_never_ends_early() -> None:
    """None of two hundred short sleeps returns before its end time, measured by the same clock."""
    clock = SystemClock()
    for _ in range(200):
        at = clock.now() + 2
        clock.sleep_until(at)
        assert clock.now() >= at


def test_a_sleep_until_the_past_returns_at_once() -> None:
    """A sleep until a past time returns at once."""
    clock = SystemClock()
    before = clock.now()
    clock.sleep_until(before - 60 * SECOND)
    assert clock.now() - before < 30 * SECOND


def test_nonces_and_random_bits_are_not_repeated() -> None:
    """A thousand nonces are all different and short enough for a record, and random bits are not repeated."""
    random_source = SystemRandom()
    assert (
        len({random_source.nonce() for _ in range(1000)}) == len({random_source.bits(64) for _ in range(1000)}) == 1000
    )
    assert len(random_source.nonce()) == 12
    assert all(0 <= random_source.fraction() < 1 and 0 <= random_source.below(3) < 3 for _ in range(1000))


def test_ten_jobs_run_concurrently_and_can_use_map() -> None:
    """All jobs of a batch meet at a barrier, so no job waits for a thread that another job occupies."""
    threads = Threads(SystemClock())
    barrier = threading.Barrier(10)
    done: list[int] = []

    def work() -> None:
        barrier.wait(60)
        done.extend(threads.map(lambda number: number, [1, 2]))

    jobs = [threads.start(work) for _ in range(10)]
    while waiting := [job for job in jobs if not job.done]:
        threads.wait(waiting, SystemClock().now() + 60 * SECOND)
    assert len(done) == 20


def test_waiting_for_a_job_ends_at_the_given_time() -> None:
    """Waiting for a job that does not end stops at the given time."""
    threads = Threads(SystemClock())
    let_go = threading.Event()

    def hold() -> None:
        let_go.wait(120)

    job = threads.start(hold)
    threads.wait([job], SystemClock().now() + 5)
    assert not job.done
    let_go.set()
    threads.wait([job], SystemClock().now() + 60 * SECOND)
    assert job.done


def test_map_keeps_the_order_of_its_items() -> None:
    """A map's results are in the order of the items, in whatever order the threads finish."""
    threads = Threads(SystemClock())
    assert threads.map(lambda number: number * 2, range(50)) == [number * 2 for number in range(50)]
    assert threads.map(str, []) == []


def test_an_error_ends_a_map_and_skips_remaining_items() -> None:
    """An error ends the map, and items that have not been started are skipped."""
    threads = Threads(SystemClock())
    begun: list[int] = []
    met, ended, let_go = threading.Barrier(17), threading.Barrier(16), threading.Event()

    def work(number: int) -> None:
        begun.append(number)
        met.wait(60)
        if not number:
            raise ZeroDivisionError
        let_go.wait(120)

    def work_on_all() -> None:
        with pytest.raises(ZeroDivisionError):
            threads.map(work, range(1000))

    job = threads.start(work_on_all)
    met.wait(60)
    # This call needs the thread in which the error occurred, and the next call needs all threads.
    assert threads.map(lambda number: number, [1, 2]) == [1, 2]
    let_go.set()
    threads.map(lambda _: ended.wait(60), range(16))
    threads.wait([job], SystemClock().now() + 60 * SECOND)
    assert job.done
    assert sorted(begun) == list(range(16))


def test_a_map_completes_while_another_map_holds_all_threads() -> None:
    """A map ends when its work is done, although another map holds all other threads."""
    threads = Threads(SystemClock())
    held, let_go = threading.Barrier(16), threading.Event()

    def hold(_: int) -> None:
        held.wait(60)
        let_go.wait(120)

    other = threads.start(partial(threads.map, hold, range(15)))  # type: ignore[arg-type]  # its results are not used
    held.wait(60)
    try:
        assert threads.map(lambda number: number, range(50)) == list(range(50))
        assert not other.done
    finally:
        let_go.set()
    threads.wait([other], SystemClock().now() + 60 * SECOND)
    assert other.done


def test_a_nested_map_runs_in_its_own_thread() -> None:
    """A nested map runs its calls in its own thread, because nested maps that waited for threads would deadlock."""
    threads = Threads(SystemClock())

    def work(_: int) -> set[int]:
        return {threading.get_ident(), *threads.map(lambda _: threading.get_ident(), range(3))}

    assert [len(each) for each in threads.map(work, range(2))] == [1, 1]


def test_a_stuck_thread_does_not_keep_the_process_alive() -> None:
    """A stuck thread does not keep the process alive, and printed output is not lost."""
    code = (
        "import threading, duetime.adapters.runtime.process as t\n"
        "threading.Thread(target=threading.Event().wait).start()\n"
        "print('said')\n"
        "t.LambdaProcess().end()\n"
    )
    end = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=180, check=False)  # noqa: S603 - our own code
    assert (end.returncode, end.stdout) == (1, "said\n")


def test_a_process_that_ends_itself_writes_its_metrics_first() -> None:
    """The metrics of an invocation are written even if the process is ended before the invocation's end."""
    code = (
        "from duetime.adapters.runtime.process import LambdaProcess, MeasuredProcess\n"
        "from duetime.adapters.runtime.telemetry import PowertoolsTelemetry\n"
        "telemetry = PowertoolsTelemetry('worker', 'duetime', {})\n"
        "telemetry.count('processes_ended')\n"
        "MeasuredProcess(LambdaProcess(), telemetry.write_metrics).end()\n"
    )
    end = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=180, check=False)  # noqa: S603 - our own code
    assert (end.returncode, json.loads(end.stdout)["processes_ended"]) == (1, [1.0])


def test_a_batch_writes_one_line_of_metrics(capsys: pytest.CaptureFixture[str]) -> None:
    """Counts are summed and durations are listed on one line, and a flush without counts writes no line."""
    telemetry = PowertoolsTelemetry("worker", "duetime", {})
    telemetry.count("tasks_succeeded")
    telemetry.count("tasks_succeeded", 2)
    telemetry.count("tasks_failed", 0)
    telemetry.measure("lateness", 5)
    telemetry.measure("lateness", 7)
    telemetry.flush()
    (line,) = capsys.readouterr().out.splitlines()
    metrics = json.loads(line)
    assert metrics["tasks_succeeded"] == [3.0]
    assert metrics["lateness"] == [5.0, 7.0]
    assert "tasks_failed" not in metrics
    telemetry.flush()
    assert capsys.readouterr().out == ""
