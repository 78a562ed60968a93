"""Where an HTTP call may lead: public addresses only. What can be known of a URL without asking anybody.

The API rejects by it when a task is created, and the call itself does when the name has been resolved.
"""

from __future__ import annotations

import ipaddress
import unicodedata
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Collection
    from urllib.parse import SplitResult

PORTS = {"http": 80, "https": 443}
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
_LOCAL_NAMES = ("localhost", "localdomain", "local", "internal", "home.arpa")
"""Names, and all names below them, that no public DNS server answers for (Source: RFC 6761, RFC 6762, RFC 8375; ICANN
resolution 2024.07.29.06 on `internal`); `metadata.google.internal` is one of them."""
_DOTS = dict.fromkeys(map(ord, "\u3002\uff0e\uff61"), ".")
"""What is taken for a dot in a name as well (Source: RFC 3490, section 3.1)."""
_WIDTH, _PART = 32, 8
"""Bits of an IPv4 address, and of each of its parts but the last that is written."""
_MOST_PARTS = 4


def refusal(url: str, allowed: Collection[str]) -> str | None:
    """Why a URL may not be called, as far as the URL itself says; `None` if nothing speaks against it.

    Args:
        url: as a client gave it.
        allowed: hosts that may be reached although they are not public.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, port_of(parts)
    except ValueError:
        return "is not a URL"
    if not host or parts.scheme not in PORTS:
        return "is not an http or https URL"
    if not port:
        return "names the port 0, which nobody can listen on"
    if host in allowed:
        return None
    plain = unicodedata.normalize("NFKC", host).translate(_DOTS).rstrip(".").lower()
    address = literal_address(plain)
    if address is not None and not is_public(address):
        shown = "" if address == host else f", that is {address}"
        return f"leads to {host}{shown}, which is not a public address"
    if address is None and any(plain == name or plain.endswith(f".{name}") for name in _LOCAL_NAMES):
        return f"leads to {host}, which is not a public address on any network"
    return None


def port_of(parts: SplitResult) -> int | None:
    """The port of a split URL: the one that it names, or the one of its scheme."""
    return PORTS.get(parts.scheme) if parts.port is None else parts.port


def literal_address(host: str) -> str | None:
    """The address that a host is, in whatever spelling a resolver takes; `None` if it is a name.

    Of IPv4 these are one to four numbers, each decimal, octal or hexadecimal (Source: POSIX, `inet_addr`).
    """
    try:
        return str(ipaddress.ip_address(host.partition("%")[0]))
    except ValueError:
        pass
    numbers = [_number(part) for part in host.split(".")]
    if len(numbers) > _MOST_PARTS or None in numbers:
        return None
    *firsts, last = [number for number in numbers if number is not None]
    rest = _WIDTH - _PART * len(firsts)
    if any(number >= 1 << _PART for number in firsts) or last >= 1 << rest:
        return None
    value = last + sum(number << _WIDTH - _PART * (place + 1) for place, number in enumerate(firsts))
    return str(ipaddress.IPv4Address(value))


def is_public(text: str) -> bool:
    """Whether an address is one of the public internet."""
    address = ipaddress.ip_address(text.partition("%")[0])
    if address.version == _UNICAST.version and address not in _UNICAST:
        return False
    if any(address in network for network in _NEVER if network.version == address.version):
        return False
    return address.is_global and not address.is_multicast


def _number(part: str) -> int | None:
    if not part.isascii() or not part.isalnum():
        return None
    base = 16 if part[:2] in {"0x", "0X"} else 8 if part[0] == "0" else 10
    try:
        return int(part, base) if base != 8 or part == "0" else int(part[1:], 8)  # noqa: PLR2004 - octal
    except ValueError:
        return None
