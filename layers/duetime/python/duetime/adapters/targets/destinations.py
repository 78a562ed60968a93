"""Where an HTTP target may lead: public addresses only, and the very address that was checked is the one called.

A name is resolved once, every address it has is checked, and the connection is made to that address, so that a
name that resolves differently the second time leads nowhere else.
"""

from __future__ import annotations

import ipaddress
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from urllib.parse import SplitResult

_PORTS = {"http": 80, "https": 443}
_NEVER = tuple(
    ipaddress.ip_network(text)
    for text in (
        "64:ff9b::/96",  # NAT64: an IPv4 address behind it is not checked
        "64:ff9b:1::/48",  # the same, local use
        "2002::/16",  # 6to4: likewise
        "2001::/32",  # Teredo: likewise
        "::/96",  # IPv4-compatible, deprecated
        "fec0::/10",  # site-local, deprecated
        "192.0.0.0/24",  # IETF protocol assignments: partly "global" to ipaddress
        "192.88.99.0/24",  # 6to4 relays
    )
)


class DestinationRefused(ValueError):
    """A URL leads where a target may not."""


@dataclass(frozen=True, slots=True)
class Destination:
    """Where to connect, and what to call the other side.

    Attributes:
        address: the checked IP address.
        host: the name in the URL, for `Host` and for TLS.
        path: path and query.
    """

    scheme: str
    address: str
    host: str
    port: int
    path: str


def find(url: str, allowed: frozenset[str]) -> Destination:
    """Resolve a URL and check where it leads.

    Args:
        url: http or https.
        allowed: hosts that may be reached although they are not public.

    Raises:
        DestinationRefused: it may not be called.
        OSError: the name cannot be resolved.
    """
    parts = urlsplit(url)
    host, port = parts.hostname, parts.port or _PORTS.get(parts.scheme)
    if not host or port is None:
        raise DestinationRefused(f"{url!r} is not an http or https URL")
    found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    addresses = [str(entry[4][0]) for entry in found]
    if host not in allowed:
        for address in addresses:
            if not _is_public(address):
                raise DestinationRefused(f"{host} leads to {address}, which is not a public address")
    return Destination(parts.scheme, addresses[0], host, port, _target(parts))


def _is_public(text: str) -> bool:
    address = ipaddress.ip_address(text.partition("%")[0])
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        address = address.ipv4_mapped
    if any(address in network for network in _NEVER if network.version == address.version):
        return False
    return address.is_global and not address.is_multicast


def _target(parts: SplitResult) -> str:
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
