"""Tests a user's project that has only its own files and the installed kit, and in which pytest runs as usual."""

from __future__ import annotations

import subprocess
import sys
from importlib.resources import files
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

EXAMPLES = """
def test_the_report_skips_the_night_without_its_hour(duetime):        # a fixture; starts at a fixed instant, never reads the wall clock
    duetime.at("2027-03-27T22:00+00:00"); ran = []
    duetime.register("report", lambda context, payload: ran.append(context.due_at))      # or the project's own handlers package
    duetime.client.schedules.create(name="nightly", cron="30 1 * * *", timezone="Europe/London", task={"type": "report"})
    duetime.advance(days=3)                                               # everything due runs, in order, each at its own instant
    duetime.assert_ran("report", times=2); duetime.assert_skipped("nightly", reason="dst_gap")

def test_a_charge_may_be_repeated(duetime):
    duetime.faults.crash_before_finish(attempt=1)                         # also deliver_twice, lose_lease, slow_heartbeat: for the user's own code, which nobody offers
    task = duetime.client.tasks.create("charge", payload={"id": 7}); duetime.run_until_idle()
    assert duetime.client.tasks.get(task.id).state == "succeeded"
"""  # noqa: E501 - as users are shown these lines
HANDLERS = """
from duetime.handlers import Context, handler

@handler("charge")
def charge(context: Context, payload: dict) -> dict:
    return {"charged": payload["id"]}
"""
NO_NETWORK = """
import socket, sys
import pytest

@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    def refuse(*arguments):
        raise AssertionError("a socket was connected or bound")
    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket.socket, "bind", refuse)
    yield
    assert "moto" not in sys.modules
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Create a project with handlers, their tests, and the settings line that names the handlers."""
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "__init__.py").touch()
    (tmp_path / "shop" / "handlers.py").write_text(HANDLERS)
    (tmp_path / "pytest.ini").write_text("[pytest]\nduetime_handlers = shop.handlers\npythonpath = .\n")
    (tmp_path / "conftest.py").write_text(NO_NETWORK)
    (tmp_path / "test_shop.py").write_text(EXAMPLES)
    return tmp_path


def _pytest(project: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments]
    return subprocess.run(command, cwd=project, capture_output=True, text=True, check=False, timeout=120)  # noqa: S603 - ours


@pytest.mark.slow
def test_the_examples_run_in_a_separate_project(project: Path) -> None:
    """The page's two examples pass unchanged, without a socket, without moto, and without any warning."""
    done = _pytest(project, "-q", "-W", "error", "--strict-markers", "--strict-config")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "2 passed" in done.stdout


@pytest.mark.parametrize("package", ["duetime", "duetime_client", "duetime_common", "duetime_testing"])
def test_the_packages_have_types(package: str) -> None:
    """A type checker in the project reads the annotations of all packages."""
    assert files(package).joinpath("py.typed").is_file()


@pytest.mark.slow
def test_without_its_handler_the_example_is_rejected_with_its_type(project: Path) -> None:
    """Without its handler, the example's task is rejected with an error that names the task type, as when deployed."""
    (project / "shop" / "handlers.py").write_text("")
    test = "def test_it(duetime):\n    duetime.client.tasks.create('charge')\n    duetime.run_until_idle()\n"
    (project / "test_shop.py").write_text(f"{test}    duetime.assert_ran('charge', times=2)\n")
    done = _pytest(project, "-q")
    assert done.returncode == 1
    assert "type: 'charge' is not known to this deployment" in done.stdout, done.stdout


def test_a_run_that_does_not_use_the_fixture_does_not_import_the_kit(project: Path) -> None:
    """For a project that does not use the fixture, the plugin imports neither duetime nor its dependencies."""
    said = (
        "def test_it():\n    import sys\n    assert not {'duetime', 'boto3', 'httpx', 'greenlet'} & set(sys.modules)\n"
    )
    (project / "test_shop.py").write_text(said)
    done = _pytest(project, "-q")
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
def test_the_url_option_runs_the_same_tests_against_a_deployment(project: Path) -> None:
    """With `--duetime-url`, tests that need virtual time are skipped, and other tests call the given URL."""
    test = "def test_it(duetime):\n    duetime.client.tasks.create('charge')\n"
    (project / "test_shop.py").write_text(EXAMPLES + test)
    (project / "conftest.py").unlink()
    done = _pytest(project, "-q", "-rs", "--duetime-url", "http://127.0.0.1:1")
    assert "2 skipped" in done.stdout, done.stdout
    assert "Unreachable" in done.stdout, done.stdout
    assert "1 failed" in done.stdout, done.stdout
