"""A deployment's rules about which targets tasks may call."""

from __future__ import annotations

import ipaddress
import unicodedata
from dataclasses import field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from duetime.domain.callers import OwnerPatterns, Reservations
from duetime.domain.errors import FaultCode, FieldInvalid
from duetime.domain.limits import MAX_REQUEST_BYTES, MAX_TIMEOUT_SECONDS
from duetime.domain.tasks.targets import (
    BODILESS,
    ArnPatterns,
    AuthScheme,
    AwsService,
    AwsTarget,
    CallbackTarget,
    HandlerTarget,
    HttpTarget,
    PullTarget,
    TopologyTarget,
    service_of,
    without_version,
)
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping
    from urllib.parse import SplitResult

    from duetime.domain.tasks.targets import Auth, HttpRequest, Target
    from duetime.domain.tasks.type_defaults import TaskSpec


PORTS = {"http": 80, "https": 443}
_NEVER = tuple(
    ipaddress.ip_network(text)
    for text in (
        "0.0.0.0/8",  # this network
        "10.0.0.0/8",  # private
        "100.64.0.0/10",  # carrier-grade NAT, also used inside AWS
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
        "64:ff9b:1::/48",  # NAT64 for local use
        "100::/64",  # discarded
        "2001::/23",  # IETF protocol assignments, Teredo
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4: carries an IPv4 address
        "3fff::/20",  # documentation: "global" to an older ipaddress
        "5f00::/16",  # segment routing: "global" to an older ipaddress
        "fc00::/7",  # private, metadata over IPv6
        "fe80::/10",  # link-local
        "fec0::/10",  # site-local, deprecated
        "ff00::/8",  # multicast
    )
)
"""These networks are listed explicitly, because `ipaddress` classifies global addresses differently in different Python
versions.

Source: IANA IPv4 and IPv6 Special-Purpose Address Registries; RFC 2765, RFC 3879, RFC 4291.
"""
_UNICAST = ipaddress.ip_network("2000::/3")
"""The IPv6 range that IANA has allocated for global unicast."""
_LOCAL_NAMES = ("localhost", "localdomain", "local", "internal", "home.arpa")
"""Names that no public DNS server resolves; their subdomains, such as `metadata.google.internal`, are not resolved
either (Source: RFC 6761, RFC 6762, RFC 8375; ICANN resolution 2024.07.29.06 on `internal`)."""
_DOTS = dict.fromkeys(map(ord, "\u3002\uff0e\uff61"), ".")
"""Characters that are equivalent to a dot in a name (Source: RFC 3490, section 3.1)."""
_WIDTH, _PART = 32, 8
"""Number of bits in an IPv4 address, and in each part of its text except the last part."""
_MOST_PARTS = 4


def refusal(url: str, allowed: Collection[str]) -> str | None:
    """Why a URL may not be called, judging by the URL alone; `None` if it may be called.

    Args:
        url: URL as given by a client.
        allowed: hosts that may be called although they are not public.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, port_of(parts)
    except ValueError:
        return "is not a URL"
    if not host or parts.scheme not in PORTS:
        return "is not an http or https URL"
    if not port:
        return "has the port 0, which cannot be used"
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
    """A split URL's port, which is explicit or the default for the URL's scheme."""
    return PORTS.get(parts.scheme) if parts.port is None else parts.port


def literal_address(host: str) -> str | None:
    """The address of a host in any notation that resolvers accept; `None` if the host is a name.

    IPv4 addresses consist of one to four numbers, each of which is decimal, octal or hexadecimal (Source: POSIX,
    `inet_addr`).
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
    """Whether an address is on the public internet."""
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


@frozen
class HttpSecret:
    """A secret in Secrets Manager.

    Attributes:
        arn: ARN of the secret.
        hosts: the hosts to which the secret may be sent.
        owners: patterns of the owners whose tasks may use the secret; empty for all owners.
    """

    arn: str
    hosts: Collection[str]
    owners: tuple[str, ...] = ()


@frozen
class HttpSecrets:
    """The secrets that HTTP calls may use, by the names that tasks use for them."""

    by_name: Mapping[str, HttpSecret] = field(default_factory=dict)

    def refusal(self, name: str, url: str, reachable: Collection[str]) -> str | None:
        """Why a secret may not be sent to a URL; `None` if it may be sent.

        Args:
            name: the secret's name as used in tasks.
            url: URL of the endpoint.
            reachable: hosts that may be called although they are not public; they may be called without TLS.
        """
        secret = self.by_name.get(name)
        if secret is None:
            return f"{name!r} is not among the secrets that the settings let tasks use"
        parts = urlsplit(url)
        if parts.hostname not in secret.hosts:
            return f"{name!r} is not for the host {parts.hostname}; the settings say which hosts it is sent to"
        if parts.scheme != "https" and parts.hostname not in reachable:
            return "is sent over https only"
        return None

    def refusal_of_owner(self, name: str, owner: str) -> str | None:
        """Why an owner's task may not use a secret; `None` if the task may use the secret."""
        secret = self.by_name.get(name)
        if secret is None or (secret.owners and not OwnerPatterns(secret.owners).include(owner)):
            return f"{name!r} is not among the secrets that the settings let the tasks of this owner use"
        return None


_NO_ARNS = ArnPatterns()
_NO_SECRETS = HttpSecrets()
_NOTHING_RESERVED = Reservations()
_NOT_CALLABLE = "is not among the resources that the settings let tasks call"
_RESERVED = "{0!r} is reserved for other owners by the settings"
_NOT_OF_BATCH = "cannot be given with `batch`, whose request and response hold several tasks"
_OURS_ONLY = "applies only to duetime's own request, which `method` and `body` replace"
_TOO_LONG = f"should be less than or equal to {MAX_TIMEOUT_SECONDS}, unless pull workers run the task"
_MOST_LISTED = 20
"""Maximum number of types that a rejection lists."""


@frozen
class TargetRules:
    """The targets that tasks may call.

    Attributes:
        pulled: the types that the settings declare as pulled.
        callable_arns: the AWS resources that tasks may call.
        reachable_hosts: hosts that HTTP calls may reach although they are not public.
        handled: the types that have a handler; if it is `None`, the types are unknown and no type is rejected.
        secrets: the secrets that HTTP calls may use.
        type_owners: types that are reserved for some owners.
        arn_owners: AWS resources that are reserved for some owners.
    """

    pulled: Collection[str] = ()
    callable_arns: ArnPatterns = _NO_ARNS
    reachable_hosts: Collection[str] = ()
    handled: Collection[str] | None = None
    secrets: HttpSecrets = _NO_SECRETS
    type_owners: Reservations = _NOTHING_RESERVED
    arn_owners: Reservations = _NOTHING_RESERVED

    def accept(self, owner: str, spec: TaskSpec) -> Target:
        """The target of a new task.

        `target_of` will later return the same target, even if the handler no longer exists.

        Raises:
            FieldInvalid: a condition of `target_of` is not met, or the task's type has no known handler and the request
                does not allow unknown types.
        """
        target = self.target_of(owner, spec)
        is_known = self.handled is None or spec.type in self.handled or spec.allow_unknown_type
        if isinstance(target, HandlerTarget) and not is_known:
            raise FieldInvalid("type", self._unknown(owner, spec.type), FaultCode.NOT_ALLOWED)
        return target

    def default_target(self, task_type: str) -> Target:
        """The target of a task that names no target: its type's pull workers, or else its type's handler."""
        return PullTarget() if task_type in self.pulled else HandlerTarget()

    def usable_types(self, owner: str, types: Iterable[str]) -> set[str]:
        """The given types, except types that are reserved for other owners."""
        return {each for each in types if self.type_owners.allow(owner, each)}

    def allow_arn(self, owner: str, arn: str) -> bool:
        """Whether a resource is not reserved for other owners; a reservation covers versions, aliases and revisions."""
        return self.arn_owners.allow(owner, arn, without_version(arn))

    def target_of(self, owner: str, spec: TaskSpec) -> Target:
        """The target of an owner's task, which is the requested target, or else the default target of the task's type.

        Raises:
            FieldInvalid: its type or resource is reserved for other owners; its type cannot be pulled; its target (pull
                workers, an AWS resource or a topology) does not support rollback; an HTTP call would reach an address
                that is not public; or an attempt may take longer than a worker function can run.
        """
        if not self.type_owners.allow(owner, spec.type):
            raise FieldInvalid("type", _RESERVED.format(spec.type), FaultCode.NOT_ALLOWED)
        target = spec.target or self.default_target(spec.type)
        if isinstance(target, PullTarget) and spec.type not in self.pulled:
            raise FieldInvalid(
                "target",
                f"is 'pull', but the settings do not declare the type {spec.type!r} as pulled",
                FaultCode.NOT_ALLOWED,
            )
        if isinstance(target, AwsTarget):
            self._check_arn("target.arn", owner, target.arn)
        if isinstance(target, AwsTarget) and target.place:
            self._check_arn(
                "target.cluster" if target.service is AwsService.ECS else "target.queue", owner, target.place
            )
        if isinstance(target, HttpTarget):
            self._check_http(owner, target)
        if spec.callback_url is not None:
            self._check_url("callback_url", spec.callback_url)
        if spec.notify_on is not None:
            self._check_address("notify_on.to", owner, spec.notify_on.to)
        if spec.rollback_on_failure and (why := _lacking_rollback(target)):
            raise FieldInvalid("rollback_on_failure", f"needs a target that supports it; {why}", FaultCode.CONFLICT)
        if spec.timeout_seconds > MAX_TIMEOUT_SECONDS and not isinstance(target, PullTarget):
            raise FieldInvalid("timeout_seconds", _TOO_LONG, FaultCode.OUT_OF_RANGE)
        return target

    def _unknown(self, owner: str, task_type: str) -> str:
        handled, pulled = self.usable_types(owner, self.handled or ()), self.usable_types(owner, self.pulled)
        more = f"; pulled types: {_listed(pulled)}" if pulled else ""
        return (
            f"{task_type!r} is not known to this deployment; it has handlers for {_listed(handled)}{more};"
            " set `allow_unknown_type` for a type that a later deployment adds"
        )

    def _check_address(self, field: str, owner: str, address: str) -> None:
        """Rejects an address to which notices may not be sent."""
        if service_of(address) is None:
            self._check_url(field, address)
        else:
            self._check_arn(field, owner, address)

    def _check_arn(self, field: str, owner: str, arn: str) -> None:
        """Rejects an AWS resource that tasks of this owner may not call."""
        if not self.callable_arns.allow(arn):
            raise FieldInvalid(field, _NOT_CALLABLE, FaultCode.NOT_ALLOWED)
        if not self.allow_arn(owner, arn):
            raise FieldInvalid(field, _RESERVED.format(arn), FaultCode.NOT_ALLOWED)

    def _check_http(self, owner: str, target: HttpTarget) -> None:
        """Rejects a request that contradicts itself, or whose URL or secret is not allowed."""
        self._check_url("target.url", target.url)
        _check_request(target)
        auth = target.request.auth
        if auth and (why := self._refusal_of_secret(owner, auth.secret, target.url)):
            raise FieldInvalid("target.auth.secret", why, FaultCode.NOT_ALLOWED)

    def _refusal_of_secret(self, owner: str, name: str, url: str) -> str | None:
        return self.secrets.refusal_of_owner(name, owner) or self.secrets.refusal(name, url, self.reachable_hosts)

    def _check_url(self, field: str, url: str) -> None:
        if why := refusal(url, self.reachable_hosts):
            raise FieldInvalid(field, why)


def _check_request(target: HttpTarget) -> None:
    """Rejects a request that contradicts itself, or is too large for a record."""
    request = target.request
    if request.is_custom and target.offers_more:
        raise FieldInvalid(f"target.{target.offers_more}", _OURS_ONLY, FaultCode.CONFLICT)
    if target.batch is not None and (field := target.conflicts_with_batch):
        raise FieldInvalid(f"target.{field}", _NOT_OF_BATCH, FaultCode.CONFLICT)
    if request.body is not None and request.method in BODILESS:
        raise FieldInvalid("target.body", f"cannot be sent with {request.method}", FaultCode.CONFLICT)
    if request.auth is not None:
        _check_header(request.auth, request)
    if request.size > MAX_REQUEST_BYTES:
        why = f"has more than {MAX_REQUEST_BYTES} bytes of headers, query and body; send a larger body as `payload`"
        raise FieldInvalid("target", why, FaultCode.TOO_LONG)


def _check_header(auth: Auth, request: HttpRequest) -> None:
    """Rejects an unused or missing header name, or a duplicate header."""
    if (auth.scheme is AuthScheme.HEADER) != bool(auth.header):
        if not auth.header:
            raise FieldInvalid("target.auth.header", "is required by the scheme `header`", FaultCode.REQUIRED)
        why = "is allowed with the scheme `header` only"
        raise FieldInvalid("target.auth.header", why, FaultCode.CONFLICT)
    if auth.header.lower() in {name.lower() for name, _ in request.headers}:
        raise FieldInvalid("target.headers", f"has {auth.header!r}, which `auth` sends", FaultCode.CONFLICT)


def _listed(types: Collection[str]) -> str:
    """Lists the names of some types, for a rejection."""
    names = sorted(types)
    more = f" and {len(names) - _MOST_LISTED} more" if len(names) > _MOST_LISTED else ""
    return ", ".join(map(repr, names[:_MOST_LISTED])) + more if names else "none"


def _lacking_rollback(target: Target) -> str:
    """Why a target does not support rollback; empty if it supports rollback."""
    match target:
        case PullTarget():
            return "pull workers do not"
        case AwsTarget():
            return "AWS resources do not"
        case CallbackTarget():
            return "callbacks do not"
        case TopologyTarget():
            return "a topology's graph has `on_failure` for that"
        case _:
            return ""
