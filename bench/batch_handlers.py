"""Compares the cost of batch handlers with that of one call per task, using the price table.

The unmodified functions run in virtual time, as in `bench.thin_traffic`: an AWS call takes 1 to 8 ms in each direction
and CPU time is zero. A handler that waits for a service takes `ONE` for one task and `MORE` for each additional task in
its call, and ten or more handlers can wait at the same time. A handler that computes blocks the other handlers in its
process.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bench.thin_traffic import MeteredAccount
from duetime.domain.dispatch.enqueue_plan import Precision
from duetime.domain.times import MINUTE, SECOND, Millis, to_iso
from duetime.handlers import REGISTRY, Batch, Registered
from duetime_cdk.environments import SIZES, FunctionName
from duetime_common.prices import DEFAULT_REGION, MILLION, PRICES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

ONE, MORE = 100, 1
"""Milliseconds that a service takes for one task and for each additional task in the same request."""
_AHEAD = 8 * MINUTE
_TYPE = "bench.index"
DELIVERIES = {"10, no wait": (10, 0), "100 within 5 s": (100, 5 * SECOND)}
"""Named values of the setting `worker_batches`: a delivery's maximum size, and the longest time to wait for it."""
RATES = (0.4, 1.0, 10.0)
"""Due tasks a second."""


@dataclass(frozen=True)
class Used:
    """A task's average usage of worker resources.

    Attributes:
        calls: number of handler calls.
        lateness: mean lateness of the start, in milliseconds.
        dollars: cost of the worker's invocations and time, and of the requests to its queue, per million tasks.
    """

    calls: float
    lateness: float
    dollars: float


class _Polled(MeteredAccount):
    """An account that counts the requests that Lambda's pollers make to receive and delete messages.

    Receive requests that return no messages are not counted.
    """

    polls = 0

    def _receive(self, url: str) -> list[dict[str, Any]]:
        messages = super()._receive(url)
        self.polls += bool(messages)
        return messages

    def _work(self, url: str, function: str, batch: list[dict[str, Any]]) -> None:
        self.polls += -(-len(batch) // 10)
        super()._work(url, function, batch)


def handlers(account: MeteredAccount, calls: list[int], *, computes: bool) -> dict[bool, Registered]:
    """Return a handler for single tasks and a handler for batches; both record the sizes of their calls."""
    busy_until: dict[object, Millis] = {}

    def work(size: int) -> None:
        calls.append(size)
        took = ONE + MORE * (size - 1)
        process = account.time.process() if computes else object()
        ends = max(account.now, busy_until.get(process, 0)) + took
        busy_until[process] = ends
        account.time.sleep_until(ends)

    def one(_context: object, _payload: object) -> None:
        work(1)

    def many(items: Sequence[object]) -> None:
        work(len(items))

    return {False: Registered({"run": one}), True: Registered({"run": many}, batch=Batch(max_size=100))}


def used(dues: Sequence[Millis], delivery: tuple[int, Millis], *, in_batches: bool, computes: bool = False) -> Used:
    """Run tasks with these due times (in milliseconds from a common time), and return their average worker usage."""
    calls: list[int] = []
    with _Polled(Precision.NORMAL) as account:
        account.worker_batch = delivery
        REGISTRY[_TYPE] = handlers(account, calls, computes=computes)[in_batches]
        first = account.now + _AHEAD
        created = [account.create(kind=_TYPE, due_at=to_iso(first + due), allow_unknown_type=True) for due in dues]
        account.run(first + max(dues) + MINUTE - account.now)
        records = [account.record(task) for task in created]
        del REGISTRY[_TYPE]
        return Used(
            calls=len(calls) / len(dues),
            lateness=sum(task.lateness or 0 for task in records) / len(dues),
            dollars=_dollars(account, len(dues)),
        )


def _dollars(account: _Polled, count: int) -> float:
    prices = PRICES[DEFAULT_REGION]
    invocations = account.invocations["worker"]
    gigabytes = SIZES[FunctionName.WORKER].memory_mb / 1024
    requests = account.requests["worker", "change_message_visibility_batch"] + account.polls
    dollars = (
        invocations * prices.function_request
        + account.spent["worker"] / SECOND * gigabytes * prices.gigabyte_second
        + requests * prices.queue_request
    )
    return dollars / count * MILLION


def rows() -> Iterator[tuple[str, str, str, Used]]:
    """Yield the names of the due times, delivery and handler, and the usage, for every measurement."""
    spread = {f"{rate:g} tasks/s": [round(number * SECOND / rate) for number in range(200)] for rate in RATES}
    for name, dues in {"1,000 at once": [0] * 1_000, **spread}.items():
        for delivery, value in DELIVERIES.items():
            for in_batches in (False, True):
                for computes in (False, True) if name.endswith("once") else (False,):
                    kind = ("a batch" if in_batches else "one task") + (", computes" if computes else "")
                    yield name, delivery, kind, used(dues, value, in_batches=in_batches, computes=computes)


def main() -> None:
    """Print a table of all measurements."""
    print("| due | delivery | a call for | tasks a call | mean lateness | worker and queue, dollars per million |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name, delivery, kind, found in rows():
        size, late = 1 / found.calls, found.lateness / SECOND
        print(f"| {name} | {delivery} | {kind} | {size:.1f} | {late:.2f} s | {found.dollars:.2f} |")


if __name__ == "__main__":
    main()
