"""Attempts' work for tests of target runners."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from duetime.domain.tasks.targets import HandlerTarget, HttpTarget, Phase
from duetime.domain.times import SECOND
from duetime.ports.targets import Work
from tests.domain.factories import NOW, task

if TYPE_CHECKING:
    from duetime.domain.tasks.task import Progress, RequestedAction


def work(
    payload: bytes = b'{"a":1}',
    *,
    url: str = "",
    seconds: int = 60,
    reports: list[Progress | None] | None = None,
    phase: Phase = Phase.RUN,
    asked: RequestedAction | None = None,
    checkpoint: bytes | None = None,
) -> Work:
    """Return a phase of the second attempt of a task with the type `report`."""
    target = HttpTarget(url) if url else HandlerTarget()
    claimed = replace(task(attempt=2, fence=3), target=target, timeout_seconds=seconds)
    told = [] if reports is None else reports
    return Work(phase, claimed, payload, checkpoint, NOW + seconds * SECOND, seconds, told.append, lambda: asked)
