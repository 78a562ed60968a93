"""Which secrets the settings let HTTP calls use, and where to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


@dataclass(frozen=True, slots=True)
class HttpSecret:
    """A secret in Secrets Manager.

    Attributes:
        arn: the secret's.
        hosts: the only hosts that it is sent to.
        owners: the only owners whose tasks may use it; empty for all.
    """

    arn: str
    hosts: Collection[str]
    owners: Collection[str] = ()


@dataclass(frozen=True, slots=True)
class HttpSecrets:
    """The secrets that HTTP calls may use, by the names that tasks give."""

    by_name: Mapping[str, HttpSecret] = field(default_factory=dict)

    def refusal(self, name: str, url: str, reachable: Collection[str]) -> str | None:
        """Why a secret may not be sent to a URL; `None` if it may.

        Args:
            name: as a task names it.
            url: of the endpoint.
            reachable: hosts that may be reached although they are not public, without TLS, too.
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
        """Why an owner's task may not use a secret; `None` if it may."""
        secret = self.by_name.get(name)
        if secret is None or (secret.owners and owner not in secret.owners):
            return f"{name!r} is not among the secrets that the settings let the tasks of this owner use"
        return None
