"""Concurrency with threads, and their process."""

from __future__ import annotations

import os
import sys
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, TypeVar, cast

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from duetime.domain.times import Millis
    from duetime.ports.runtime import Clock, Job

T = TypeVar("T")
R = TypeVar("R")

_JOBS = 32
"""A batch has at most ten messages, each with its attempt, its heartbeat, and the end of a hanging target."""
_REQUESTS = 16
"""Concurrent requests: the shards of a group are read together."""


class ThreadJob:
    """A job on a thread."""

    def __init__(self, future: Future[None]) -> None:
        self.future = future

    @property
    def done(self) -> bool:
        """Whether it has ended."""
        return self.future.done()


class Threads:
    """Jobs and requests on two thread pools: jobs wait for requests, so they must not share one."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._jobs = ThreadPoolExecutor(_JOBS, "job")
        self._requests = ThreadPoolExecutor(_REQUESTS, "request")

    def start(self, work: Callable[[], None]) -> Job:
        """Start a job on a thread."""
        return ThreadJob(self._jobs.submit(work))

    def wait(self, jobs: Sequence[Job], until: Millis) -> None:
        """Return when a running job ends, or at the given time."""
        futures = [cast("ThreadJob", job).future for job in jobs if not job.done]
        wait(futures, max(0, until - self._clock.now()) / 1000, FIRST_COMPLETED)

    def map(self, work: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """Call `work` for each item, several in parallel; `work` must not call `map` itself."""
        todo = list(items)
        return [work(todo[0])] if len(todo) == 1 else list(self._requests.map(work, todo))


class LambdaProcess:
    """The process of the function."""

    def end(self) -> None:
        """End it at once. Lambda starts another process, and this one's messages come back at their visibility."""
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)
