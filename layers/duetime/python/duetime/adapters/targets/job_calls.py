"""How the jobs of a service of AWS are called: what the modules of the services have in common."""

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
    """The service has started nothing, and may do it later."""


class NotListed(Exception):
    """The service knows a job of the name, and does not say which one it is yet."""


class NoJob(Exception):
    """The service has started something that is no job, and would again."""


@dataclass(frozen=True, slots=True)
class JobCalls:
    """How the jobs of a service are started, read and stopped.

    Attributes:
        start: starts the job of a name, and returns its ARN.
        find: finds the job of a name by what the service lists.
        ending: how a job has ended; `None` while it runs.
        stop: stops a job; one that has ended stays as it is.
        repeats: whether `start` may start a second job of a name.
        name: the name of a job that an event tells of, by the name of what was started and what the event calls the
            job; `None` if the events of the service have the name.
    """

    start: Callable[[Resources, AwsTarget, str, bytes], str]
    find: Callable[[Resources, AwsTarget, str], str | None]
    ending: Callable[[Resources, AwsTarget, str], JobEnding | None]
    stop: Callable[[Resources, AwsTarget, str], None]
    repeats: bool = False
    name: Callable[[Any, str, str], str] | None = None


def parameters_of(target: AwsTarget) -> dict[str, Any]:
    """What else the request that starts a job says."""
    given: dict[str, Any] = json.loads(target.parameters or "{}")
    return given
