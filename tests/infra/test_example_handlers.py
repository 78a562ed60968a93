from __future__ import annotations

import importlib
import json
import threading
from datetime import UTC, datetime
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import pytest

from duetime.handlers import REGISTRY, Context, Unretriable
from infra import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duetime.handlers import Handler


@pytest.fixture
def registered(monkeypatch: pytest.MonkeyPatch) -> dict[str, Handler]:
    """Return the handlers that importing the package registers, as in the worker."""
    monkeypatch.syspath_prepend(str(ROOT / "examples" / "handlers"))
    importlib.import_module("example_handlers")
    return {task_type: registered.phases["run"] for task_type, registered in REGISTRY.items()}


@pytest.fixture
def reports() -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """Return an address that receives reports, and the reports."""
    taken: list[dict[str, Any]] = []

    class Taking(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            taken.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *arguments: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Taking)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/report", taken
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def attempt(number: int, told: list[tuple[int | None, str]] | None = None) -> Context:
    """Return a running attempt that records its reported progress."""
    progress = told if told is not None else []
    return Context(
        task_id="01TASK",
        type="ci.job",
        attempt=number,
        fence=number + 6,
        deadline=datetime(2026, 11, 21, tzinfo=UTC),
        checkpoint=None,
        report=lambda percent, message: progress.append((percent, message)),
        ask=lambda: None,
    )


def test_echo_returns_the_payload(registered: dict[str, Handler]) -> None:
    """The result has the payload and the number of the attempt."""
    answer = registered["echo"](attempt(2), {"any": ["json", None]})
    assert answer == {"payload": {"any": ["json", None]}, "task_id": "01TASK", "attempt": 2, "fence": 8}


def test_refusal_is_final(registered: dict[str, Handler]) -> None:
    """A refused payload fails the task without a retry."""
    with pytest.raises(Unretriable, match="refuses 'no'"):
        registered["echo.refuse"](attempt(1), "no")


def test_job_fails_the_requested_number_of_times_and_then_succeeds(registered: dict[str, Handler]) -> None:
    """With two requested failures, the first two attempts raise a retriable error, and the third returns a result."""
    run = registered["ci.job"]
    job = {"job": "unit", "fail_times": 2}
    for number in (1, 2):
        with pytest.raises(RuntimeError, match=f"'unit' failed at attempt {number}") as failed:
            run(attempt(number), job)
        assert not isinstance(failed.value, Unretriable)
    assert run(attempt(3), job) == {"job": "unit", "attempt": 3}


def test_every_attempt_of_a_job_reports_itself(
    registered: dict[str, Handler], reports: tuple[str, list[dict[str, Any]]]
) -> None:
    """Each attempt, failed or not, posts its identity and its time, so that a receiver can count attempts."""
    url, taken = reports
    job = {"job": "unit", "fail_times": 1, "work_ms": 20, "report_url": url}
    with pytest.raises(RuntimeError):
        registered["ci.job"](attempt(1), job)
    registered["ci.job"](attempt(2), job)
    identity = [(report["task_id"], report["attempt"], report["fence"], report["succeeded"]) for report in taken]
    assert identity == [("01TASK", 1, 7, False), ("01TASK", 2, 8, True)]
    assert all(report["ended_at_ms"] - report["started_at_ms"] >= 20 for report in taken)


def test_long_job_reports_its_progress_until_completion(registered: dict[str, Handler]) -> None:
    """A long job reports an increasing progress that ends at 100 percent."""
    told: list[tuple[int | None, str]] = []
    registered["ci.job"](attempt(1, told), {"job": "long", "work_ms": 1000})
    percents = [percent for percent, _ in told]
    assert percents == sorted(percents, key=lambda percent: percent or 0)
    assert percents[-1] == 100


def test_report_accepts_only_web_addresses(registered: dict[str, Handler]) -> None:
    """Only web addresses are accepted, so a payload cannot make the worker read a local file."""
    with pytest.raises(ValueError, match="not a web address"):
        registered["ci.job"](attempt(1), {"job": "sly", "report_url": "file:///etc/passwd"})
