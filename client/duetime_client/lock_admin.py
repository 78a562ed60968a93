"""Locks: their holders and waiting tasks."""

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
    """A task that holds a lock; its fence is `None` while the lock is only reserved for it."""

    task_id: str
    fence: int | None
    expires_at: datetime


class LockWaiter(ResponseModel):
    """A task that waits for a lock."""

    task_id: str
    due_at: datetime


class Lock(ResponseModel):
    """A named resource: its holders and, except in lists, the waiting tasks in their order."""

    key: str
    holders: list[LockHolder]
    waiters: list[LockWaiter] = Field(default_factory=list)


class Locks:
    """The client's methods for locks."""

    _transport: Transport

    def list_locks(self) -> Iterator[Lock]:
        """All locks that were used in the last day or so, by key, page by page."""
        token: str | None = None
        while True:
            query = [("next_token", token)] if token else []
            response = self._transport.request("GET", LOCKS, query=query)
            match document_of(response):
                case {"locks": list() as locks, **rest}:
                    yield from (read(Lock, response, lock) for lock in locks)
                    token = str(rest.get("next_token") or "")
                case _:
                    raise unexpected_response(response, "no page of locks in the response")
            if not token:
                return

    def get_lock(self, key: str) -> Lock:
        """One lock, with the first of its waiting tasks."""
        response = self._transport.request("GET", path_of(key))
        return read(Lock, response, document_of(response))

    def release_lock(self, key: str) -> Lock:
        """Take a lock from its holders by force; the first waiting task gets it."""
        response = self._transport.request("DELETE", path_of(key))
        return read(Lock, response, document_of(response))


A = TypeVar("A", bound=ResponseModel)


def read(model: type[A], response: httpx.Response, document: object) -> A:
    """A part of a response as a model.

    Raises:
        UnexpectedResponse: It is something else.
    """
    if not isinstance(document, Mapping):
        raise unexpected_response(response, "the response is not what was asked for")
    try:
        return model.of_document(document)
    except ValidationError as error:
        first = error.errors()[0]
        field = ".".join(str(part) for part in first["loc"])
        raise unexpected_response(response, f"the response is not valid ({field}: {first['msg']})") from error


def path_of(key: str) -> str:
    """The path of a lock; the key is one segment of it, whatever characters it has."""
    return f"{LOCKS}/{quote(key, safe='', errors='replace')}"
