"""The process: its clock, randomness and threads."""

from __future__ import annotations

import base64
import os
import random
import sys
import threading
import time
from collections import deque
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import TYPE_CHECKING, TypeVar, cast

from duetime.domain.limits import MAX_WORKER_BATCH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from duetime.domain.times import Millis
    from duetime.ports.runtime import Clock, Job


_NANOSECONDS = 1_000_000
_NONCE_BYTES = 9


class SystemClock:
    """The wall clock of the machine."""

    def now(self) -> Millis:
        """The current time, rounded down to the millisecond."""
        return time.time_ns() // _NANOSECONDS

    def sleep_until(self, at: Millis) -> None:
        """Return no earlier than `at` by this clock, even if a sleep ends early."""
        while (rest := at * _NANOSECONDS - time.time_ns()) > 0:
            time.sleep(rest / 1e9)


class SystemRandom:
    """The operating system's randomness."""

    def __init__(self) -> None:
        self._source = random.SystemRandom()

    def bits(self, count: int) -> int:
        """A number with the given number of random bits."""
        return self._source.getrandbits(count)

    def below(self, bound: int) -> int:
        """A whole number of at least 0 and less than `bound`."""
        return self._source.randrange(bound)

    def fraction(self) -> float:
        """A number of at least 0 and less than 1."""
        return self._source.random()

    def nonce(self) -> str:
        """Twelve characters with 72 random bits."""
        return base64.urlsafe_b64encode(self._source.randbytes(_NONCE_BYTES)).decode("ascii")


T = TypeVar("T")
R = TypeVar("R")

_JOBS = 4 * MAX_WORKER_BATCH + 2
"""Maximum number of concurrent jobs: each message needs a job for its attempt, its heartbeat, the end of a hanging
target, and perhaps a batch handler's call; two more jobs change visibilities. A thread is created when it is first
needed."""
_REQUESTS = 16
"""Number of concurrent requests, so that a group's shards are read together."""


class ThreadJob:
    """A job on a thread."""

    def __init__(self, future: Future[None]) -> None:
        self.future = future

    @property
    def done(self) -> bool:
        """Whether the job has ended."""
        return self.future.done()


class Threads:
    """Runs jobs and requests on separate thread pools, because jobs wait for requests."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._here = threading.local()
        self._jobs = ThreadPoolExecutor(_JOBS, "job")
        self._requests = ThreadPoolExecutor(_REQUESTS, "request", self._begin_requests)

    def start(self, work: Callable[[], None]) -> Job:
        """Start a job on a thread."""
        return ThreadJob(self._jobs.submit(work))

    def wait(self, jobs: Sequence[Job], until: Millis) -> None:
        """Return when a running job ends, or at the given time."""
        futures = [cast("ThreadJob", job).future for job in jobs if not job.done]
        wait(futures, max(0, until - self._clock.now()) / 1000, FIRST_COMPLETED)

    def map(self, work: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """Call `work` for each item, several in parallel; a nested `map` makes its calls one after another.

        Otherwise all threads could wait for calls that no thread is left to make.
        """
        todo = list(items)
        if len(todo) <= 1 or getattr(self._here, "makes_requests", False):
            return [work(each) for each in todo]
        # A job for each thread, not for each item, because handing over a job takes 30 microseconds. `next` of a list's
        # iterator is atomic for threads.
        left, found = iter(enumerate(todo)), dict[int, R]()

        def take() -> None:
            try:
                for place, each in left:
                    found[place] = work(each)
            except BaseException:
                # The other threads begin no more items.
                deque(left, maxlen=0)
                raise

        for job in [self._requests.submit(take) for _ in range(min(len(todo), _REQUESTS))]:
            job.result()
        return [found[place] for place in range(len(todo))]

    def _begin_requests(self) -> None:
        self._here.makes_requests = True


class LambdaProcess:
    """The process of the function."""

    def end(self) -> None:
        """End the process at once; Lambda starts a new one, and the messages return after their visibility timeout."""
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)
