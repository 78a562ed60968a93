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
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # shared by carriers, and by AWS inside
        "127.0.0.0/8",  # loopback
        "169.254.0.0/16",  # link-local: metadata of machines, containers and functions
        "172.16.0.0/12",  # private
        "192.0.0.0/24",  # IETF protocol assignments: partly "global" to ipaddress
        "192.0.2.0/24",  # documentation
        "192.88.99.0/24",  # 6to4 relays
        "192.168.0.0/16",  # private
        "198.18.0.0/15",  # benchmarks
        "198.51.100.0/24",  # documentation
        "203.0.113.0/24",  # documentation
        "224.0.0.0/4",  # multicast
        "240.0.0.0/4",  # reserved, broadcast
        "::/96",  # unspecified, loopback, IPv4-compatible
        "::ffff:0:0/96",  # IPv4-mapped
        "::ffff:0:0:0/96",  # IPv4-translated: "global" to ipaddress
        "64:ff9b::/96",  # NAT64: an IPv4 address behind it is not checked
        "64:ff9b:1::/48",  # the same, local use
        "100::/64",  # discarded
        "2001::/23",  # IETF protocol assignments, Teredo
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4: carries an IPv4 address
        "3fff::/20",  # documentation: "global" to an older ipaddress
        "5f00::/16",  # segment routing: likewise
        "fc00::/7",  # private, metadata over IPv6
        "fe80::/10",  # link-local
        "fec0::/10",  # site-local, deprecated
        "ff00::/8",  # multicast
    )
)
"""Written out, because what `ipaddress` calls global differs between versions of Python.

Source: IANA IPv4 and IPv6 Special-Purpose Address Registries; RFC 2765, RFC 3879, RFC 4291.
"""
_UNICAST = ipaddress.ip_network("2000::/3")
"""All that IANA has given out of IPv6 as global unicast."""


class DestinationRefused(ValueError):
    """A URL leads where a target may not."""


@dataclass(frozen=True, slots=True)
class Destination:
    """Where to connect, and what to call the other side.

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
    authority = parts.netloc.rpartition("@")[2]
    return Destination(parts.scheme, addresses[0], host, port, _target(parts), authority)


def _is_public(text: str) -> bool:
    address = ipaddress.ip_address(text.partition("%")[0])
    if address.version == _UNICAST.version and address not in _UNICAST:
        return False
    if any(address in network for network in _NEVER if network.version == address.version):
        return False
    return address.is_global and not address.is_multicast


def _target(parts: SplitResult) -> str:
    return (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
