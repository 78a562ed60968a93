"""Callers of the API, the owners that they act for, the roles that determine their permissions, and owner patterns."""

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
"""An entry in a list of identities that matches every caller; meant for a deployment with only one user or team."""


class Role(StrEnum):
    """The role of a caller.

    Attributes:
        READER: reads the owner's data, except secrets and values that the settings redact.
        WRITER: reads, creates, changes and deletes the owner's data.
        WORKER: leases tasks of pulled types, reports on them, and creates tasks for them.
        OPERATOR: does everything that a writer does; also sees, stops and limits the tasks of all owners.
        ADMIN: may do everything, including creating and revoking API keys, and reading other owners' data.
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
        owner: the owner that the caller acts for; empty for unauthenticated callers of public operations.
        roles: the roles that the caller was given.
        actor: the caller's name in histories, which is the owner's name unless several callers act for the owner.
        is_own: whether the caller is the owner or on its team, not an administrator who reads another owner's data.
    """

    owner: str
    roles: frozenset[Role] = frozenset()
    actor: str = ""
    is_own: bool = True

    def has(self, role: Role) -> bool:
        """Whether the caller may do what the role allows."""
        return any(role in each.included for each in self.roles)

    @property
    def is_operator(self) -> bool:
        """Whether the caller may act for all owners."""
        return self.has(Role.OPERATOR)

    def require(self, role: Role) -> None:
        """Reject a caller who may not do what the role allows.

        Raises:
            OperatorRequired: the caller lacks the operator role.
            RoleRequired: the caller lacks another role.
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
        """Whether an identity belongs to an administrator."""
        return caller in self.names or EVERYBODY in self.names


@frozen
class OwnerPatterns:
    """Patterns that select owners.

    Attributes:
        patterns: owner names in which `*` stands for any characters and `?` for one character; only the pattern `*`
            matches everybody.
    """

    patterns: tuple[str, ...] = ()

    def include(self, owner: str) -> bool:
        """Whether a pattern matches the owner."""
        return any(wildcard_matcher(pattern).fullmatch(owner) for pattern in self.patterns)


@frozen
class Reservations:
    """Types and resources that are reserved for some owners; everyone may use all other types and resources.

    Attributes:
        by_pattern: for each pattern of types or ARNs, the owners that are allowed; the first pattern that matches
            decides.
    """

    by_pattern: Mapping[str, OwnerPatterns] = field(default_factory=dict)

    def allow(self, owner: str, *names: str) -> bool:
        """Whether an owner may use a type or ARN; a pattern that matches any of its names matches it."""
        for pattern, owners in self.by_pattern.items():
            if any(wildcard_matcher(pattern).fullmatch(name) for name in names):
                return owners.include(owner)
        return True
