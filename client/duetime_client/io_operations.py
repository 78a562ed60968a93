"""The API's operations as steps without I/O, written once for both clients.

An operation is a generator of steps. A runner (`io_runners`) executes each step and sends the step's result back; the
runner of `Client` blocks, and the runner of `AsyncClient` awaits.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

if TYPE_CHECKING:
    import httpx

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True)
class Request(Generic[T]):
    """An API request, and the decoder of its response.

    Attributes:
        method: GET, POST and so on.
        path: The path, including `/v1`.
        decode: Reads the result from a response, whose status is always 2xx.
        query: The query parameters.
        body: Sent as JSON; bytes are sent unchanged, with the content type in `headers`.
        headers: Sent in addition to the headers of every request.
        repeatable: Whether the request can be sent twice without harm, as a GET or a request with an idempotency key
            can.
    """

    method: str
    path: str
    decode: Callable[[httpx.Response], T]
    query: Sequence[tuple[str, str]] = ()
    body: object = None
    headers: Mapping[str, str] = field(default_factory=dict)
    repeatable: bool = False


@dataclass(frozen=True, slots=True)
class HttpCall:
    """Send one HTTP request; the result is the `httpx.Response`.

    Attributes:
        is_signed_url: Whether the URL contains its own credentials, so that the request is sent without the API's
            credentials.
    """

    method: str
    url: str
    content: bytes | None
    headers: Mapping[str, str]
    is_signed_url: bool = False


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait for the given number of seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class OpenConnection:
    """Open the WebSocket that the following steps use; an open WebSocket is closed first."""

    url: str


@dataclass(frozen=True, slots=True)
class SendMessage:
    """Send a message over the WebSocket."""

    message: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ReceiveMessage:
    """Receive a message over the WebSocket; the result is `None` if no message arrives within `timeout` seconds."""

    timeout: float


@dataclass(frozen=True, slots=True)
class CloseConnection:
    """Close the WebSocket."""


@dataclass(frozen=True, slots=True)
class Item(Generic[T_co]):
    """Yield a result to the caller, and continue when the next result is requested."""

    value: T_co


Step: TypeAlias = HttpCall | Pause | OpenConnection | SendMessage | ReceiveMessage | CloseConnection
Steps: TypeAlias = Generator[Step, Any, T]
"""Steps with one result."""
Items: TypeAlias = Generator[Step | Item[T], Any, None]
"""Steps with any number of results."""
