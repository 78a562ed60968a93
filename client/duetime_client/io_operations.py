"""What the operations of the API do, step by step, without doing it: one description for both clients.

An operation is a generator of steps. A runner (`io_runners`) carries out each and sends its result back: that of
`Client` waits meanwhile, that of `AsyncClient` awaits.
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
    """A request of the API, and how its response is read.

    Attributes:
        method: GET, POST and so on.
        path: With `/v1`.
        decode: Reads the result from a response, which is always a 2xx.
        query: Parameters.
        body: Sent as JSON; bytes are sent unchanged, with the type of the headers.
        headers: Besides those that the client sends with all requests.
        repeatable: Whether it may be sent twice. A GET may, and a request with an idempotency key.
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
    """Send one HTTP request; the result is the `httpx.Response`."""

    method: str
    url: str
    content: bytes | None
    headers: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Pause:
    """Wait for so many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class OpenConnection:
    """Open a WebSocket, which the following steps use; one that is open is closed."""

    url: str


@dataclass(frozen=True, slots=True)
class SendMessage:
    """Send a message over the WebSocket."""

    message: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class ReceiveMessage:
    """Receive a message over the WebSocket; the result is `None` if there is none for so many seconds."""

    timeout: float


@dataclass(frozen=True, slots=True)
class CloseConnection:
    """Close the WebSocket."""


@dataclass(frozen=True, slots=True)
class Item(Generic[T_co]):
    """Hand a result to the caller, and go on when the caller asks for the next one."""

    value: T_co


Step: TypeAlias = HttpCall | Pause | OpenConnection | SendMessage | ReceiveMessage | CloseConnection
Steps: TypeAlias = Generator[Step, Any, T]
"""Steps with one result."""
Items: TypeAlias = Generator[Step | Item[T], Any, None]
"""Steps with any number of results."""
