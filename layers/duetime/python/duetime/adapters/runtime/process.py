"""Provides the process's clock, randomness and threads, and ends the process."""

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
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from duetime.domain.times import Millis
    from duetime.ports.runtime import Clock, Job, Process


_NANOSECONDS = 1_000_000
_NONCE_BYTES = 9


class SystemClock:
    """The machine's wall clock."""

    def now(self) -> Millis:
        """The current time, rounded down to the millisecond."""
        return time.time_ns() // _NANOSECONDS

    def sleep_until(self, at: Millis) -> None:
        """Sleep until this clock shows at least `at`, even if a single sleep ends early."""
        while (rest := at * _NANOSECONDS - time.time_ns()) > 0:
            time.sleep(rest / 1e9)


class SystemRandom:
    """The operating system's randomness."""

    def __init__(self) -> None:
        self._source = random.SystemRandom()

    def bits(self, count: int) -> int:
        """A random integer with the given number of bits."""
        return self._source.getrandbits(count)

    def below(self, bound: int) -> int:
        """A random integer that is at least 0 and less than `bound`."""
        return self._source.randrange(bound)

    def fraction(self) -> float:
        """A random number that is at least 0 and less than 1."""
        return self._source.random()

    def nonce(self) -> str:
        """Twelve characters with 72 random bits."""
        return base64.urlsafe_b64encode(self._source.randbytes(_NONCE_BYTES)).decode("ascii")


T = TypeVar("T")
R = TypeVar("R")

_JOBS = 4 * MAX_WORKER_BATCH + 2
"""Maximum number of concurrent jobs. A message can need one job each for its attempt, its heartbeat, ending a
hanging target, and a batch handler's call; two more jobs change visibilities. Threads are created when first needed."""
_REQUESTS = 16
"""Maximum number of concurrent requests, which is enough to read a group's shards at the same time."""


class ThreadJob:
    """A call that runs on a thread."""

    def __init__(self, future: Future[None]) -> None:
        self.future = future

    @property
    def done(self) -> bool:
        """Whether the call has ended."""
        return self.future.done()


class Threads:
    """Runs jobs and requests on separate thread pools, because jobs wait for requests."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._here = threading.local()
        self._jobs = ThreadPoolExecutor(_JOBS, "job")
        self._requests = ThreadPoolExecutor(_REQUESTS, "request", self._begin_requests)

    def start(self, work: Callable[[], None]) -> Job:
        """Start a call on a thread."""
        return ThreadJob(self._jobs.submit(work))

    def wait(self, jobs: Sequence[Job], until: Millis) -> None:
        """Wait until all jobs have ended, another job ends, or the given time is reached, whichever comes first."""
        futures = [cast("ThreadJob", job).future for job in jobs if not job.done]
        wait(futures, max(0, until - self._clock.now()) / 1000, FIRST_COMPLETED)

    def map(self, work: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """Call `work` for each item, with several calls in parallel, and return the results in order.

        A nested `map` makes its calls one after another. If nested calls ran in parallel, all threads could wait for
        calls that no free thread can make.
        """
        todo = list(items)
        if len(todo) <= 1 or getattr(self._here, "makes_requests", False):
            return [work(each) for each in todo]
        # One job is submitted per thread, not per item, because handing over a job takes 30 microseconds. Threads can
        # share the iterator, because its `next` is atomic.
        left, found = iter(enumerate(todo)), dict[int, R]()

        def take() -> None:
            try:
                for place, each in left:
                    found[place] = work(each)
            except BaseException:
                # The iterator is emptied, so that the other threads begin no more items.
                deque(left, maxlen=0)
                raise

        for job in [self._requests.submit(take) for _ in range(min(len(todo), _REQUESTS))]:
            job.result()
        return [found[place] for place in range(len(todo))]

    def _begin_requests(self) -> None:
        self._here.makes_requests = True


class LambdaProcess:
    """The function's process."""

    def end(self) -> None:
        """End the process at once. Lambda starts a new process, and messages return after their visibility timeout."""
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(1)


@frozen
class MeasuredProcess:
    """A process whose metrics are written before it ends, because its invocation does not reach the usual flush."""

    process: Process
    write_metrics: Callable[[], None]

    def end(self) -> None:
        """Write the metrics and end the process at once; spans are not exported, because that could take too long."""
        try:
            self.write_metrics()
        finally:
            self.process.end()
