"""Addresses that an HTTP target may use: public ones only, and exactly the checked address is called.

A name is resolved once, each of its addresses is checked, and the connection uses the checked address, so that a second
resolution with another result has no effect.
"""

from __future__ import annotations

import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from duetime.domain.tasks.allowed_targets import is_public, port_of, refusal

if TYPE_CHECKING:
    from urllib.parse import SplitResult


class AddressForbidden(ValueError):
    """A URL leads to an address that a target must not call."""


@dataclass(frozen=True, slots=True)
class Destination:
    """The address to connect to, and the names to send.

    Attributes:
        address: the checked IP address.
        host: the name in the URL, for TLS.
        path: path and query.
        authority: name and port as in the URL, for `Host`.
    """

    scheme: str
    address: str
    host: str
    port: int
    path: str
    authority: str


def find(url: str, allowed: frozenset[str]) -> Destination:
    """Resolve a URL and check its address.

    Args:
        url: http or https.
        allowed: non-public hosts that may be called.

    Raises:
        AddressForbidden: its address must not be called.
        OSError: the name cannot be resolved.
    """
    if why := refusal(url, allowed):
        raise AddressForbidden(f"{url!r} {why}")
    parts = urlsplit(url)
    host, port = parts.hostname or "", port_of(parts) or 0
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = [str(entry[4][0]) for entry in found]
    if host not in allowed:
        for address in addresses:
            if not is_public(address):
                raise AddressForbidden(f"{host} leads to {address}, which is not a public address")
    authority = parts.netloc.rpartition("@")[2]
    return Destination(parts.scheme, addresses[0], host, port, _target(parts), authority)


def _target(parts: SplitResult) -> str:
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
