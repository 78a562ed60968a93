"""Tests that `AsyncClient` sends the same requests, retries the same way and returns the same results as `Client`."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass, field
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeAlias, assert_type

import pytest

from duetime_client import (
    ApiError,
    AsyncClient,
    BearerToken,
    Client,
    Conflict,
    Retries,
    Task,
    Unreachable,
    WaitTimeout,
)
from duetime_client.topologies import Topology
from tests.client.deployment import NOW, Answer, Deployment, problem
from tests.client.test_contract import CALLS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from duetime_client.changes import Change
    from duetime_client.literals import TaskState
    from tests.client.deployment import Received


Run: TypeAlias = "Callable[[Callable[[AsyncClient], Awaitable[Any]]], Any]"


@pytest.fixture
def run(deployment: Deployment, waits: list[float]) -> Run:
    """Run a coroutine with a client that does not really sleep and whose random numbers are always one half."""

    async def sleep(seconds: float) -> None:
        waits.append(seconds)

    async def used(use: Callable[[AsyncClient], Awaitable[Any]]) -> object:
        async with AsyncClient(deployment.url, sleep=sleep, random_source=lambda: 0.5, now=lambda: NOW) as client:
            return await use(client)

    return lambda use: asyncio.run(used(use))


def _without_key(received: Received) -> tuple[str, str, bytes, dict[str, str]]:
    headers = {name.lower(): value for name, value in received.headers.items()}
    return received.method, received.target, received.body, {**headers, "idempotency-key": ""}


@pytest.mark.parametrize("method", sorted(CALLS))
def test_both_clients_send_the_same_requests(client: Client, deployment: Deployment, run: Run, method: str) -> None:
    """For each method, both clients send the same request, except for the idempotency key."""
    arguments, options = CALLS[method]

    async def call(client: AsyncClient) -> None:
        answer = attrgetter(method)(client)(*arguments, **options)
        await (anext(answer) if hasattr(answer, "__anext__") else answer)

    deployment.scripted.extend([problem(404, "task_not_found", "there is nothing")] * 2)
    with pytest.raises(ApiError):
        run(call)
    with pytest.raises(ApiError):
        next(attrgetter(method)(client)(*arguments, **options))
    first, second = deployment.received
    assert _without_key(first) == _without_key(second)


@pytest.mark.parametrize("failure", [Answer(None), Answer(503, {"message": "Service Unavailable"})])
def test_a_create_request_is_resent_with_its_key_after_a_lost_response(
    deployment: Deployment,
    run: Run,
    waits: list[float],
    failure: Answer,
) -> None:
    """After a lost response, the request is resent with the same key and creates only one task."""
    deployment.scripted.append(failure)

    async def create(client: AsyncClient) -> Task:
        return await client.tasks.create("report")

    assert run(create).type == "report"
    first, second = deployment.received
    assert first.headers["Idempotency-Key"] == second.headers["Idempotency-Key"]
    assert (len(deployment.tasks), waits) == (1, [0.1])


def test_an_update_that_may_have_been_applied_is_not_retried(deployment: Deployment, run: Run) -> None:
    """A cancel request without a response is not retried and raises an error."""
    deployment.scripted.append(Answer(None))
    with pytest.raises(Unreachable):
        run(lambda client: client.tasks.cancel("x"))
    assert len(deployment.received) == 1


def test_tasks_are_created_listed_followed_and_waited_for(deployment: Deployment, run: Run) -> None:
    """Lists are fetched page by page, a task is polled until its outcome is known, and results have exact types."""

    async def use(client: AsyncClient) -> list[TaskState]:
        task = assert_type(await client.tasks.create("report", delay_seconds=60), Task)
        results = assert_type(
            await client.tasks.create_batch([{"type": "report"}, {"type": "refused"}]), list[Task | ApiError]
        )
        assert [isinstance(result, Task) for result in results] == [True, False]
        assert_type(client.tasks.list(state="scheduled"), AsyncIterator[Task])
        await client.tasks.create("report")
        assert len([found.id async for found in client.tasks.list()]) == 3
        deployment.states.extend(["running", "running", "succeeded", "succeeded"])
        seen = [found.state async for found in client.tasks.follow(task.id)]
        assert (await client.tasks.wait(task.id)).is_terminal
        return seen

    assert run(use) == ["running", "running", "succeeded"]


def test_return_types_of_the_blocking_client_are_exact(client: Client) -> None:
    """The blocking client returns the type that the asynchronous client's coroutine returns."""
    assert isinstance(assert_type(client.tasks.create("report"), Task), Task)
    assert isinstance(assert_type(client.tasks.list(state="scheduled"), Iterator[Task]), Iterator)
    assert isinstance(assert_type(client.topologies.follow("x"), Iterator[Topology]), Iterator)


@pytest.mark.parametrize("timeout", [0, 3.0])
def test_a_wait_that_times_out_raises_an_error_with_the_task(
    client: Client, deployment: Deployment, run: Run, timeout: float
) -> None:
    """If a task has not ended in time, the wait raises an error with the task's state, and the task continues."""
    task = client.tasks.create("report")
    elapsed = iter(range(100))

    def passing() -> Any:  # noqa: ANN401 - a time
        return NOW.replace(second=next(elapsed))

    async def no_time(_seconds: float) -> None: ...

    async def wait() -> None:
        async with AsyncClient(deployment.url, now=passing, sleep=no_time) as another:
            await another.tasks.wait(task.id, timeout=timeout)

    with pytest.raises(WaitTimeout, match="is scheduled after"):
        asyncio.run(wait())
    with Client(deployment.url, now=passing, sleep=lambda _seconds: None) as another, pytest.raises(TimeoutError):
        another.tasks.wait(task.id, timeout=timeout)
    assert run(lambda client: client.tasks.get(task.id)).state == "scheduled"


@dataclass
class Connection:
    """A WebSocket connection that is lost after a few messages."""

    frames: deque[dict[str, Any]]
    sent: list[Mapping[str, Any]] = field(default_factory=list)
    is_closed: bool = False

    async def send(self, message: Mapping[str, Any]) -> None:
        """Record a sent message."""
        self.sent.append(message)

    async def receive(self, timeout: float) -> Mapping[str, Any] | None:  # noqa: ARG002, ASYNC109 - as the real one
        """Return the next message."""
        if not self.frames:
            raise Unreachable("ws", "lost", sent=True)
        return self.frames.popleft()

    async def close(self) -> None:
        """Record that the connection was closed."""
        self.is_closed = True


def _changed(task_id: str, version: int, state: str) -> dict[str, Any]:
    item = {"kind": "task", "id": task_id, "version": version, "state": state, "finished_at": None}
    return {"kind": "change", "changes": [{"id": task_id, "version": version, "refs": ["1"], "left": [], "item": item}]}


def test_leaving_a_watch_closes_the_connection(client: Client, deployment: Deployment) -> None:
    """Messages are an asynchronous iterator; leaving the iteration closes the connection."""
    task = client.tasks.create("report")
    connection = Connection(deque([_changed(task.id, 2, "running"), _changed(task.id, 3, "waiting")]))
    ticket = {"ticket": "t", "url": "wss://example.org", "expires_in": 30}

    async def connect(url: str) -> Connection:
        assert url == "wss://example.org?ticket=t"
        return connection

    async def watch() -> list[Change]:
        async with AsyncClient(deployment.url, connect=connect) as another:
            found = []
            changes = another.tasks.watch(task.id)
            found.append(await anext(changes))
            deployment.scripted.append(Answer(201, ticket))
            found.extend([await anext(changes), await anext(changes)])
            await changes.aclose()  # type: ignore[attr-defined]  # an asynchronous generator
            return found

    assert [change.version for change in asyncio.run(watch())] == [1, 2, 3]
    assert connection.is_closed
    assert connection.sent == [{"do": "subscribe", "ref": "1", "topic": f"task:{task.id}"}]


def test_a_cancelled_coroutine_stops_waiting(client: Client, deployment: Deployment) -> None:
    """Cancelling an asyncio task stops its wait, and the client can still be used."""
    task = client.tasks.create("report", delay_seconds=3600)

    async def use() -> str:
        polled = asyncio.Event()

        async def sleep(_seconds: float) -> None:
            polled.set()
            await asyncio.Event().wait()

        async with AsyncClient(deployment.url, sleep=sleep) as another:
            waiting = asyncio.create_task(another.tasks.wait(task.id))
            await polled.wait()
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
            return (await another.tasks.get(task.id)).state

    assert asyncio.run(use()) == "scheduled"


def test_requests_are_authenticated_and_retries_are_settable(deployment: Deployment) -> None:
    """`AsyncClient` takes the same authentication and retry objects as `Client`."""
    deployment.scripted.append(Answer(500, None))

    async def use() -> None:
        async with AsyncClient(
            deployment.url, auth=BearerToken("secret"), owner="team", retries=Retries(attempts=1), timeout=5
        ) as client:
            await client.tasks.create("report")

    with pytest.raises(ApiError):
        asyncio.run(use())
    (received,) = deployment.received
    assert (received.headers["Authorization"], received.headers["X-Duetime-Owner"]) == ("Bearer secret", "team")


def test_the_asynchronous_client_raises_a_conflict_error(deployment: Deployment, run: Run) -> None:
    """`AsyncClient` raises the same errors as `Client`."""
    deployment.scripted.append(problem(409, "state_conflict", "it runs"))
    with pytest.raises(Conflict) as caught:
        run(lambda client: client.tasks.delete("x"))
    assert caught.value.code == "state_conflict"
