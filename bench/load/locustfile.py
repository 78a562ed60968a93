"""Defines locust's users, which create tasks or poll existing tasks; only `bench.load.load_step` starts this file."""

from __future__ import annotations

import json
import random
import time
from collections import Counter
from http import HTTPStatus
from pathlib import Path
from typing import TYPE_CHECKING, Any

from locust import FastHttpUser, constant_throughput, events, task

if TYPE_CHECKING:
    from argparse import ArgumentParser

    from locust.env import Environment

_ACCEPTED: list[str] = []
_COMING_BACK: Counter[str] = Counter()
"""The number of responses with a `Retry-After` header, by request kind and status."""


class _Caller(FastHttpUser):
    """A user that sends requests at a constant rate, whatever the responses are; only slow responses lower the rate."""

    abstract = True
    connection_timeout = 10.0
    network_timeout = 35.0

    def on_start(self) -> None:
        """Wait for a random time, so that users do not send their requests at the same moments."""
        self._chance = random.Random()  # noqa: S311 - spreads load
        time.sleep(self._chance.random() / self._option("pace"))  # locust makes this a greenlet's sleep

    def wait_time(self) -> float:
        """Return the number of seconds until the next call."""
        seconds: float = constant_throughput(self._option("pace"))(self)
        return seconds

    def call(self, kind: str, method: str, path: str, body: object = None) -> Any:  # noqa: ANN401 - locust's own response
        """Send one request, and count its response under its kind and status."""
        with self.client.request(method, path, json=body, name=kind, catch_response=True) as response:
            name = f"{kind} {response.status_code}"
            response.request_meta["name"] = name
            response.success()
            if response.status_code and "Retry-After" in response.headers:
                _COMING_BACK[name] += 1
            return response

    def _option(self, name: str) -> Any:  # noqa: ANN401 - whatever the option is
        return getattr(self.environment.parsed_options, name)


class Creator(_Caller):
    """Creates tasks."""

    @task
    def create(self) -> None:
        """Create a small task that is due later."""
        body = {"type": "echo", "payload": {"load": 1}, "delay_seconds": self._option("delay")}
        response = self.call("create", "POST", "/v1/tasks", body)
        if response.status_code == HTTPStatus.CREATED:
            _ACCEPTED.append(response.json()["id"])


class Poller(_Caller):
    """Polls tasks."""

    def on_start(self) -> None:
        """Read the ids of the tasks to poll."""
        super().on_start()
        self._ids = Path(self._option("ids")).read_text().split()

    @task
    def poll(self) -> None:
        """Poll a random task."""
        self.call("poll", "GET", f"/v1/tasks/{self._chance.choice(self._ids)}")


def _options(parser: ArgumentParser) -> None:
    parser.add_argument("--pace", type=float, default=1.0, help="requests per second from each user")
    parser.add_argument("--delay", type=float, default=3600.0, help="seconds after which created tasks are due")
    parser.add_argument("--ids", default="", help="file with the ids to read")
    parser.add_argument("--report", default="", help="file to write the results to")


def _report(environment: Environment, **_: object) -> None:
    came = {
        entry.name: {
            "count": entry.num_requests,
            "p50_ms": entry.get_response_time_percentile(0.5),
            "p99_ms": entry.get_response_time_percentile(0.99),
            "coming_back": _COMING_BACK[entry.name],
        }
        for entry in environment.stats.entries.values()
    }
    options: Any = environment.parsed_options
    Path(options.report).write_text(json.dumps({"came": came, "accepted": _ACCEPTED}))


events.init_command_line_parser.add_listener(_options)  # type: ignore[no-untyped-call] # locust has no types for this function
events.quitting.add_listener(_report)  # type: ignore[no-untyped-call] # same
