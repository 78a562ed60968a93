"""Locks: who holds them, who waits for them."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime  # noqa: TC003 - pydantic reads the annotations when the class is made
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote

from pydantic import Field, ValidationError

from duetime_client.problems import document_of, unexpected_response
from duetime_client.task import ResponseModel

if TYPE_CHECKING:
    from collections.abc import Iterator

    import httpx

    from duetime_client.transport import Transport

LOCKS = "/v1/locks"


class LockHolder(ResponseModel):
    """A task that holds a lock; its fence is `None` while the lock waits for it to come."""

    task_id: str
    fence: int | None
    until: datetime


class LockWaiter(ResponseModel):
    """A task in a lock's line."""

    task_id: str
    due_at: datetime


class Lock(ResponseModel):
    """A named resource: who holds it, and, unless it comes from a list, who waits for it in which order."""

    key: str
    holders: list[LockHolder]
    waiters: list[LockWaiter] = Field(default_factory=list)


class Locks:
    """The part of the client that looks at locks."""

    _transport: Transport

    def list_locks(self) -> Iterator[Lock]:
        """Every lock that was used within about a day, in the order of their keys, page by page."""
        token: str | None = None
        while True:
            query = [("next_token", token)] if token else []
            response = self._transport.request("GET", LOCKS, query=query)
            match document_of(response):
                case {"locks": list() as locks, **rest}:
                    yield from (read(Lock, response, lock) for lock in locks)
                    token = str(rest.get("next_token") or "")
                case _:
                    raise unexpected_response(response, "no page of locks in the answer")
            if not token:
                return

    def get_lock(self, key: str) -> Lock:
        """One lock, with the first of its line."""
        response = self._transport.request("GET", path_of(key))
        return read(Lock, response, document_of(response))

    def free_lock(self, key: str) -> Lock:
        """Take a lock away from whoever holds it; the first of its line is let in at once."""
        response = self._transport.request("DELETE", path_of(key))
        return read(Lock, response, document_of(response))


A = TypeVar("A", bound=ResponseModel)


def read(model: type[A], response: httpx.Response, document: object) -> A:
    """A part of an answer as what it should be.

    Raises:
        UnexpectedResponse: It is something else.
    """
    if not isinstance(document, Mapping):
        raise unexpected_response(response, "the answer is not what was asked for")
    try:
        return model.of_document(document)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise unexpected_response(response, f"the answer is not valid ({field}: {first['msg']})") from error


def path_of(key: str) -> str:
    """The address of a lock; whatever the key holds stays one segment of it."""
    return f"{LOCKS}/{quote(key, safe='', errors='replace')}"
