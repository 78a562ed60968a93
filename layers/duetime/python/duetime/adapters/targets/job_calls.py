"""The common part of the calls for jobs of AWS services."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from duetime.domain.tasks.attempt_results import Failed, Succeeded

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime.adapters.targets.aws_resource_clients import Resources
    from duetime.domain.tasks.targets import AwsTarget

JobEnding = Succeeded | Failed
WHY_STOPPED = "stopped by duetime: its task was cancelled, or its time is over"


class NoCapacity(Exception):
    """The service has started nothing, and may start it later."""


class NotListed(Exception):
    """The service knows a job with the name, and does not list it yet."""


class NoJob(Exception):
    """The service has started something that is no job, and would do so again."""


@dataclass(frozen=True, slots=True)
class JobCalls:
    """The calls that start, read and stop jobs of a service.

    Attributes:
        start: starts the job with a name, and returns its ARN.
        find: finds the job with a name in the service's lists.
        ending: returns the end of a job; `None` while it runs.
        stop: stops a job; an ended one stays as it is.
        repeats: whether `start` may start a second job with the same name.
        name: returns a job's name from the started resource's name and the event's identifier of the
            job; `None` if the events of the service have the name.
    """

    start: Callable[[Resources, AwsTarget, str, bytes], str]
    find: Callable[[Resources, AwsTarget, str], str | None]
    ending: Callable[[Resources, AwsTarget, str], JobEnding | None]
    stop: Callable[[Resources, AwsTarget, str], None]
    repeats: bool = False
    name: Callable[[Any, str, str], str] | None = None


def parameters_of(target: AwsTarget) -> dict[str, Any]:
    """Further parameters of the request that starts a job."""
    given: dict[str, Any] = json.loads(target.parameters or "{}")
    return given
