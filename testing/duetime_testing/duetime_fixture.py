"""Defines what the `duetime` fixture provides: an account in virtual time with a client and assertions."""

from __future__ import annotations

import random
from datetime import datetime, timedelta
from enum import StrEnum
from functools import cached_property
from importlib import import_module
from threading import get_ident
from typing import TYPE_CHECKING, Any, NoReturn, Unpack

from duetime.domain.times import DAY, SECOND, Millis, from_datetime, to_datetime
from duetime.handlers import REGISTRY, registered_as, use_codec
from duetime.handlers.options import checked_options
from duetime.handlers.payload_codec import present_codec
from duetime.handlers.secrets import FOR_TESTS
from duetime_client import AsyncClient, Client
from duetime_client.attempt_client import is_in_coroutine
from duetime_client.live_connection import WebSocketMissing
from duetime_common.handler_batches import check_batch
from duetime_common.handler_retries import RetryRule
from duetime_testing.account import VirtualAccount
from duetime_testing.assertions import Assertions
from duetime_testing.errors import NotIdle
from duetime_testing.handler_invocation import HandlerCall
from duetime_testing.in_process_transport import InProcessTransport, SignedUrlTransport
from duetime_testing.simulation.event_loop import without_event_loop
from duetime_testing.simulation.virtual_time import running_time

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from duetime_common.handler_batches import Batch
    from duetime_common.handler_retries import Classes
    from duetime_common.option_fields import TypeOptions
    from duetime_common.payload_codecs import PayloadCodec
    from duetime_testing.executions import Execution
    from duetime_testing.faults import Faults
    from duetime_testing.http_endpoints import HttpEndpoints

START = datetime.fromisoformat("2026-01-05T09:00:00+00:00")
"""The virtual time at which each test begins (on a Monday)."""
LONGEST: Millis = 2 * DAY
"""The most virtual time that `run_until_idle` lets pass, in milliseconds."""
_URL = "http://localhost"


class Mode(StrEnum):
    """How a test's tasks run.

    Attributes:
        VIRTUAL: tasks run when they are due, as time passes.
        INLINE: due tasks run within the request that creates them.
        RECORD: tasks are created but do not run.
    """

    VIRTUAL = "virtual"
    INLINE = "inline"
    RECORD = "record"


class Duetime(Assertions):
    """A simulated deployment for one test, which runs the unmodified functions in virtual time over fakes of AWS.

    Time passes only during calls to `advance`, `run_until_idle`, `at` and `sleep`, and while a request waits for its
    response. Use an instance only in the thread that created it, and close it after use.

    Attributes:
        handlers_package: package that registers handlers when it is imported, as in a deployment.
    """

    def __init__(
        self,
        *,
        start: datetime = START,
        mode: Mode | str = Mode.VIRTUAL,
        handlers_package: str = "",
        secrets: Mapping[str, str] | None = None,
    ) -> None:
        self._thread = get_ident()
        self._handlers_package = handlers_package
        self._mode = Mode(mode)
        self._is_fresh = True
        self._account = self._new_account(from_datetime(start))
        self._earlier_secrets = dict(FOR_TESTS)
        self.secrets.update(secrets or {})
        self._earlier_codec = present_codec()

    def _new_account(self, start: Millis) -> VirtualAccount:
        account = VirtualAccount(start, self._handlers_package)
        account.receive_messages(receives=self._mode is not Mode.RECORD)
        return account

    def close(self) -> None:
        """End all running functions, and restore the process's secrets and codec."""
        if "client" in self.__dict__:
            self.client.close()
        self._account.close()
        self.secrets.clear()
        self.secrets.update(self._earlier_secrets)
        use_codec(self._earlier_codec)

    def use_codec(self, codec: PayloadCodec) -> None:
        """Let this test's clients and handlers encrypt and decrypt with a codec.

        Call this method before `client` is used.
        """
        use_codec(codec)

    @cached_property
    def client(self) -> Client:
        """The public client over an in-process transport."""
        return Client(
            _URL,
            sleep=self.sleep,
            random_source=random.Random(1).random,  # noqa: S311 - repeatable on purpose
            now=lambda: self.now,
            connect=_refuse_connection,
            http_transport=InProcessTransport(self._begin, self._after_change),
            storage_transport=SignedUrlTransport(self._begin),
            codec=present_codec(),
        )

    @cached_property
    def async_client(self) -> AsyncClient:
        """The asynchronous client; waiting for a response takes only virtual time."""

        async def sleep(seconds: float) -> None:
            with without_event_loop():
                self.sleep(seconds)

        async def refuse_connection(url: str) -> NoReturn:
            _refuse_connection(url)

        return AsyncClient(
            _URL,
            sleep=sleep,
            random_source=random.Random(1).random,  # noqa: S311 - repeatable on purpose
            now=lambda: self.now,
            connect=refuse_connection,
            http_transport=InProcessTransport(self._begin, self._after_change),
            storage_transport=SignedUrlTransport(self._begin),
            codec=present_codec(),
        )

    # Time.

    @property
    def now(self) -> datetime:
        """The virtual time."""
        return to_datetime(self._account.time.now())

    def at(self, moment: datetime | str) -> None:
        """Set the start time or, if the test has already used the account, let time pass until the given time.

        Raises:
            ValueError: the time has no UTC offset, or the test's clock has already passed the time.
        """
        moment = instant(moment)
        at = from_datetime(moment)
        if self._is_fresh:
            before, self._account = self._account, self._new_account(at)
            self._account.take_over(before)
            before.close()
            return
        if at < self._account.time.now():
            raise ValueError(
                f"{moment.isoformat()} is in the past: it is {self.now.isoformat()}, and time only moves forward"
            )
        self._pass_until(at)

    def advance(self, *, days: float = 0, hours: float = 0, minutes: float = 0, seconds: float = 0) -> None:
        """Let time pass; each task that becomes due runs at exactly its due time."""
        length = timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)
        if length < timedelta():
            raise ValueError("time only moves forward")
        self._pass_until(self._account.time.now() + length // timedelta(milliseconds=1))

    def sleep(self, seconds: float) -> None:
        """Let time pass for the caller, which can be a handler or the test."""
        until = self._account.time.now() + round(seconds * SECOND)
        if running_time() is self._account.time:
            self._account.time.sleep_until(until)
        else:
            self._pass_until(until)

    def run_until_idle(self) -> None:
        """Let time pass until every due task has ended.

        This method also waits for retries and for tasks whose worker lost the lease, but not for tasks that are not due
        yet, paused tasks, tasks whose target reports the outcome later, and tasks for pull workers.

        Raises:
            NotIdle: a task has not ended after two days of virtual time.
        """
        self._check_caller("run_until_idle")
        account = self._begin()
        if self._mode is Mode.RECORD:
            return
        seen = -1

        def goes_on() -> bool:
            nonlocal seen
            if account.writes == seen or account.is_busy():
                return True
            seen = account.writes
            return bool(account.waiting_tasks())

        if account.waiting_tasks() or account.is_busy():
            account.time.run_while(goes_on, account.time.now() + LONGEST)
        if account.waiting_tasks():
            raise NotIdle(self._explained(f"not idle after {LONGEST // DAY} days"))

    def _pass_until(self, at: Millis) -> None:
        self._check_caller("advance")
        self._begin().time.run_until(at)

    def _begin(self) -> VirtualAccount:
        """Return the account; afterwards, the start time can no longer be changed."""
        self._check_thread()
        self._is_fresh = False
        return self._account

    def _after_change(self) -> None:
        if self._mode is Mode.INLINE:
            self.run_until_idle()

    def _check_caller(self, name: str) -> None:
        self._check_thread()
        if running_time() is not None:
            raise RuntimeError(f"a handler cannot call {name}: use duetime.sleep(seconds) to let time pass")

    def _check_thread(self) -> None:
        if get_ident() != self._thread:
            raise RuntimeError("virtual time works only in the thread of its test: create a Duetime for each thread")

    # Handlers, endpoints and faults.

    @property
    def mode(self) -> Mode:
        """How the test's tasks run."""
        return self._mode

    @mode.setter
    def mode(self, mode: Mode | str) -> None:
        self._mode = Mode(mode)
        self._account.receive_messages(receives=self._mode is not Mode.RECORD)

    def register(
        self,
        task_type: str,
        handler: Callable[..., Any],
        *,
        payload: type | None = None,
        batch: Batch | None = None,
        retry_on: Classes | None = None,
        no_retry_on: Classes = (),
        **options: Unpack[TypeOptions],
    ) -> None:
        """Register a function or a class as the handler of a task type, for this test only.

        The keyword arguments are the same as for `duetime.handlers.handler`; omitted arguments are taken from a
        decorated handler.
        """
        check_batch(batch)
        rule, defaults = RetryRule(retry_on, no_retry_on), checked_options(task_type, options)
        self._account.handlers[task_type] = registered_as(task_type, handler, payload, rule, defaults, batch)

    def deliver_in_batches(self, size: int, seconds: float) -> None:
        """Deliver tasks to workers as the setting `worker_batches` does.

        By default, a delivery has up to ten tasks and does not wait.

        Args:
            size: maximum number of tasks in a delivery, a multiple of ten.
            seconds: how long a delivery waits to collect `size` tasks.
        """
        self._account.worker_batch = size, round(seconds * SECOND)

    def pull(self, task_type: str) -> None:
        """Declare a pulled type; the test leases its tasks with `client.leases.acquire`."""
        self._account.declare_pulled(task_type)

    @property
    def secrets(self) -> dict[str, str]:
        """The values of the handlers' secrets by name; a test can change the values."""
        return FOR_TESTS

    @property
    def http(self) -> HttpEndpoints:
        """The HTTP endpoints that tasks and callbacks call."""
        return self._account.http

    @property
    def faults(self) -> Faults:
        """The faults to inject."""
        return self._account.injected

    def perform(self, task_type: str, payload: Any = None, *, call: HandlerCall | None = None) -> Any:  # noqa: ANN401 - any JSON
        """Call the handler of a type once with a test context; the handler's exceptions propagate to the caller.

        Args:
            task_type: the type of the handler.
            payload: the payload to pass.
            call: the details of the attempt, created with `duetime.call(...)`; this object also records the handler's
                progress reports.

        Raises:
            NotJson: the payload or the result changes when it is converted to JSON and back.
        """
        if self._handlers_package:
            import_module(self._handlers_package)
        registered = self._account.handlers.get(task_type) or REGISTRY.get(task_type)
        if registered is None:
            raise LookupError(f"no handler is registered for the type {task_type!r}")
        return (call or self.call(task_type)).run(registered, payload)

    def call(self, task_type: str, **facts: Any) -> HandlerCall:  # noqa: ANN401 - the attributes of HandlerCall
        """Prepare a handler call for `perform`; `facts` are `HandlerCall` attributes, such as `attempt` and `steps`."""
        return HandlerCall(task_type, self.now, **{"clients": self._client_of_caller, **facts})

    def _client_of_caller(self) -> Client | AsyncClient:
        return self.async_client if is_in_coroutine() else self.client

    # Executions.

    @property
    def executions(self) -> Sequence[Execution]:
        """Every executed phase of every attempt, in order."""
        return self._account.executions.every

    @property
    def _errors(self) -> Sequence[str]:
        return self._account.errors

    def _count_runs(self, task_type: str, payload: Any) -> int:  # noqa: ANN401 - same
        return sum(each.payload == payload for each in self._account.executions.runs(task_type))


def _refuse_connection(_url: str) -> NoReturn:
    """Reject WebSocket connections, so that the client polls in virtual time."""
    raise WebSocketMissing


def instant(moment: datetime | str) -> datetime:
    """Parse a time with a UTC offset.

    Raises:
        ValueError: the time has no UTC offset.
    """
    moment = datetime.fromisoformat(moment) if isinstance(moment, str) else moment
    if moment.tzinfo is None:
        raise ValueError(f"{moment.isoformat()} has no UTC offset: write {moment.isoformat()}+00:00")
    return moment
