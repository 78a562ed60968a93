"""Generates a load step: a separate process with locust sends requests at a given rate for some time."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

LOCUSTFILE = Path(__file__).with_name("locustfile.py")
LOOPBACK = "127.0.0.1"
STOP_SECONDS = 40
"""Seconds that requests in flight can still take at the end of a step, which is longer than the API's timeout."""


class NotThisMachine(ValueError):
    """The load was not sent, because its address is not on this machine."""

    def __init__(self, url: str) -> None:
        super().__init__(f"a load is sent to {LOOPBACK} only, not to {url}")


class LocustFailed(RuntimeError):
    """The load could not be generated; the error message contains locust's output."""


@dataclass(frozen=True, slots=True)
class Offer:
    """The load to generate.

    Attributes:
        kind: whether the users create tasks or poll tasks.
        per_second: total request rate of all users.
        users: maximum number of concurrent users.
        delay_seconds: delay from the creation of a task to its due time.
        ids: ids of the tasks to poll.
    """

    kind: Literal["Creator", "Poller"]
    per_second: float
    seconds: int = 10
    users: int = 16
    delay_seconds: float = 3600
    ids: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Count:
    """The number and response times of responses with one status."""

    count: int
    p50_ms: float
    p99_ms: float
    coming_back: int
    """The number of responses with this status that have a `Retry-After` header."""


@dataclass(frozen=True, slots=True)
class StepResult:
    """The result of a load step.

    Attributes:
        answers: responses by status; status 0 stands for requests without a response.
        accepted: ids of tasks created with status 201.
    """

    offer: Offer
    answers: Mapping[int, Count]
    accepted: Sequence[str]

    @property
    def wanted(self) -> int:
        """The status of a successful response."""
        return (HTTPStatus.CREATED if self.offer.kind == "Creator" else HTTPStatus.OK).value

    @property
    def done(self) -> Count:
        """The successful responses."""
        return self.answers.get(self.wanted, Count(0, 0, 0, 0))

    @property
    def per_second(self) -> float:
        """Successful requests a second."""
        return self.done.count / self.offer.seconds

    def counted(self, *statuses: int) -> int:
        """Return the number of responses with one of these statuses."""
        return sum(self.answers[status].count for status in statuses if status in self.answers)


def made(url: str, offer: Offer) -> StepResult:
    """Generate the load, and return its result when the time is up and all requests have ended.

    Raises:
        NotThisMachine: the address is not on the loopback interface.
        LocustFailed: locust ended with an error.
    """
    if urlsplit(url).hostname != LOOPBACK:
        raise NotThisMachine(url)
    with tempfile.TemporaryDirectory() as folder:
        ids, report = Path(folder, "ids"), Path(folder, "report")
        ids.write_text("\n".join(offer.ids))
        ended = subprocess.run(  # noqa: S603 - our own file, by this very Python
            [*_command(url, offer), "--ids", str(ids), "--report", str(report)],
            check=False,
            capture_output=True,
            text=True,
            timeout=offer.seconds + 2 * STOP_SECONDS,
        )
        if ended.returncode:
            raise LocustFailed(ended.stderr)
        return _came(offer, json.loads(report.read_text()))


def _command(url: str, offer: Offer) -> list[str]:
    options = {
        "--locustfile": LOCUSTFILE,
        "--host": url,
        "--users": offer.users,
        "--spawn-rate": offer.users,
        "--run-time": f"{offer.seconds}s",
        "--stop-timeout": STOP_SECONDS,
        "--loglevel": "ERROR",
        "--exit-code-on-error": 0,
        "--pace": offer.per_second / offer.users,
        "--delay": offer.delay_seconds,
    }
    pairs = [str(part) for option in options.items() for part in option]
    return [sys.executable, "-m", "locust", "--headless", "--only-summary", *pairs, offer.kind]


def _came(offer: Offer, report: Any) -> StepResult:  # noqa: ANN401 - JSON
    answers = {int(name.split()[1]): Count(**count) for name, count in report["came"].items()}
    return StepResult(offer, answers, report["accepted"])
