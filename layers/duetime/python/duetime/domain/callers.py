"""Who calls the API: the owner that a caller acts for, the roles that decide what it may do, and patterns of owners."""

from __future__ import annotations

from dataclasses import field
from enum import StrEnum
from typing import TYPE_CHECKING

from duetime.domain.errors import OperatorRequired, RoleRequired
from duetime.domain.wildcards import wildcard_matcher
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping


EVERYBODY = "*"
"""In a list of identities, stands for every caller: for a deployment that nobody else uses."""


class Role(StrEnum):
    """The role of a caller.

    Attributes:
        READER: reads the owner's data, except secrets and values that the settings redact.
        WRITER: reads, creates, changes and deletes the owner's data.
        WORKER: leases tasks of pulled types, reports on them, and creates tasks for them.
        OPERATOR: like a writer; also sees, stops and limits the tasks of all owners.
        ADMIN: everything, including creating and revoking API keys, and reading other owners' data.
    """

    READER = "reader"
    WRITER = "writer"
    WORKER = "worker"
    OPERATOR = "operator"
    ADMIN = "admin"

    @property
    def included(self) -> frozenset[Role]:
        """The role itself, and the roles whose operations it includes."""
        return _INCLUDED[self]


_INCLUDED = {
    Role.READER: frozenset({Role.READER}),
    Role.WRITER: frozenset({Role.READER, Role.WRITER}),
    Role.WORKER: frozenset({Role.WORKER}),
    Role.OPERATOR: frozenset({Role.READER, Role.WRITER, Role.OPERATOR}),
    Role.ADMIN: frozenset(Role),
}


@frozen
class Caller:
    """The sender of a request.

    Attributes:
        owner: the owner that it acts for; empty if nobody is authenticated, for public operations.
        roles: the roles that it was given.
        actor: its name in histories; the owner, unless several callers act for that.
        is_own: whether it is the owner or one of its team, not an administrator who reads another owner's data.
    """

    owner: str
    roles: frozenset[Role] = frozenset()
    actor: str = ""
    is_own: bool = True

    def has(self, role: Role) -> bool:
        """Whether it may do what the role allows."""
        return any(role in each.included for each in self.roles)

    @property
    def is_operator(self) -> bool:
        """Whether it may act for all owners."""
        return self.has(Role.OPERATOR)

    def require(self, role: Role) -> None:
        """Reject a caller who may not do what the role allows.

        Raises:
            OperatorRequired: it concerns all owners.
            RoleRequired: the caller has no such role.
        """
        if not self.has(role):
            raise OperatorRequired if role is Role.OPERATOR else RoleRequired(role)


@frozen
class Admins:
    """The identities that may perform operations on all owners.

    Attributes:
        names: identities in the form of owner names, or `EVERYBODY`.
    """

    names: frozenset[str] = frozenset()

    def include(self, caller: str) -> bool:
        """Whether an identity is one of them."""
        return caller in self.names or EVERYBODY in self.names


@frozen
class OwnerPatterns:
    """Patterns that owners match.

    Attributes:
        patterns: owners in which `*` stands for any characters and `?` for one; `*` alone is everybody.
    """

    patterns: tuple[str, ...] = ()

    def include(self, owner: str) -> bool:
        """Whether a pattern matches the owner."""
        return any(wildcard_matcher(pattern).fullmatch(owner) for pattern in self.patterns)


@frozen
class Reservations:
    """Types and resources reserved for some owners; everything else is free to all.

    Attributes:
        by_pattern: patterns of types or ARNs, with the owners; the first pattern that matches decides.
    """

    by_pattern: Mapping[str, OwnerPatterns] = field(default_factory=dict)

    def allow(self, owner: str, name: str) -> bool:
        """Whether an owner may use a type or ARN."""
        owners = (owners for pattern, owners in self.by_pattern.items() if wildcard_matcher(pattern).fullmatch(name))
        first = next(owners, None)
        return first is None or first.include(owner)
