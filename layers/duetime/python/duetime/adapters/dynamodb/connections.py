"""Sends a DynamoDB client's requests with `http.client`, which takes about half of the processor time of urllib3.

botocore still signs and repeats the requests, and parses the responses: this only replaces its `URLLib3Session`, which
also reads the trusted certificates again for each connection.
"""

from __future__ import annotations

import socket
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from ssl import SSLError as TlsFailed
from ssl import create_default_context
from typing import TYPE_CHECKING, Any, NamedTuple, cast
from urllib.parse import urlsplit
from weakref import finalize

from botocore import exceptions
from botocore.httpsession import get_cert_path
from urllib3.util import wait_for_read

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from email.message import Message
    from ssl import SSLContext

    from botocore.awsrequest import AWSPreparedRequest


class HttpResponse(NamedTuple):
    """What botocore reads of a response."""

    status_code: int
    headers: Message
    content: bytes


class Connections:
    """Sends requests over kept connections; threads may share it.

    Args:
        connect_seconds: time limit of a new connection.
        read_seconds: time limit of a response.
        authorities: path of the certificates that `https` trusts.
    """

    def __init__(self, connect_seconds: float, read_seconds: float, authorities: str = "") -> None:
        self._connect_seconds = connect_seconds
        self._read_seconds = read_seconds
        self._authorities = authorities
        self._tls: SSLContext | None = None
        self._idle: dict[str, list[HTTPConnection]] = {}
        finalize(self, _close, self._idle)

    def send(self, request: AWSPreparedRequest) -> HttpResponse:
        """Send one request.

        Raises:
            HTTPClientError: there is no whole response; botocore sends the request again.
        """
        with _translated(request.url, exceptions.ConnectTimeoutError, exceptions.EndpointConnectionError):
            connection = self._connection(request.url)
        try:
            with _translated(request.url, exceptions.ReadTimeoutError, exceptions.ConnectionClosedError):
                connection.request("POST", "/", cast("bytes", request.body), dict(request.headers.items()))
                response = connection.getresponse()
                answer = HttpResponse(response.status, response.headers, response.read())
        except BaseException:
            # The next response on this connection could be the one to this request.
            connection.close()
            raise
        self._idle.setdefault(request.url, []).append(connection)
        return answer

    def close(self) -> None:
        """Close the idle connections."""
        _close(self._idle)

    def _connection(self, url: str) -> HTTPConnection:
        """An idle connection that the other side has not closed, or a new one."""
        while True:
            try:
                # The last one used: the others may be closed for being idle.
                connection = self._idle.setdefault(url, []).pop()
            except IndexError:
                return self._opened(url)
            # Nothing but its end can be read of an idle connection.
            if connection.sock is not None and not wait_for_read(connection.sock, timeout=0):
                return connection
            connection.close()

    def _opened(self, url: str) -> HTTPConnection:
        host = urlsplit(url).netloc
        if url.startswith("https:"):
            if self._tls is None:
                self._tls = create_default_context(cafile=self._authorities)
            connection: HTTPConnection = HTTPSConnection(host, timeout=self._connect_seconds, context=self._tls)
        else:
            connection = HTTPConnection(host, timeout=self._connect_seconds)
        connection.connect()
        connection.sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        connection.sock.settimeout(self._read_seconds)
        return connection


def _close(idle: Mapping[str, list[HTTPConnection]]) -> None:
    for connections in idle.values():
        while connections:
            connections.pop().close()


def use_connections(client: Any) -> None:  # noqa: ANN401 - its attributes are not in the stubs
    """Let a client of botocore send with `Connections`, unless a proxy or a client certificate is configured."""
    endpoint, config = client._endpoint, client.meta.config  # noqa: SLF001 - botocore has no setting for it
    session = endpoint.http_session
    proxy = session._proxy_config.proxy_url_for(client.meta.endpoint_url)  # noqa: SLF001 - same
    trusted = session._verify  # noqa: SLF001 - same
    if proxy is None and config.client_cert is None and trusted:
        authorities: Any = get_cert_path(verify=True) if trusted is True else trusted
        endpoint.http_session = Connections(config.connect_timeout, config.read_timeout, authorities)


@contextmanager
def _translated(url: str, late: Callable[..., Exception], lost: Callable[..., Exception]) -> Iterator[None]:
    """Raise botocore's errors, by which it decides about a repetition."""
    try:
        yield
    except TimeoutError as error:
        raise late(endpoint_url=url, error=error) from error
    except TlsFailed as error:
        raise exceptions.SSLError(endpoint_url=url, error=error) from error
    except (OSError, HTTPException) as error:
        raise lost(endpoint_url=url, error=error) from error
