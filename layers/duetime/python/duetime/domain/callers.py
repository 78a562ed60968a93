"""Who calls the API: the owner that a caller acts for, and the roles that decide what it may do."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from duetime.domain.errors import OperatorRequired, RoleRequired

EVERYBODY = "*"
"""In a list of identities, stands for every caller: for a deployment that nobody else uses."""


class Role(StrEnum):
    """What a caller may do.

    Attributes:
        READER: read what the owner has, except secrets and what the settings redact.
        WRITER: read, create, change and delete what the owner has.
        WORKER: lease tasks of pulled types, report on them, and create tasks for them.
        OPERATOR: what a writer may do, and stop, limit and see what concerns all owners.
        ADMIN: everything, including to create and revoke API keys, and to read what other owners have.
    """

    READER = "reader"
    WRITER = "writer"
    WORKER = "worker"
    OPERATOR = "operator"
    ADMIN = "admin"

    @property
    def included(self) -> frozenset[Role]:
        """The role itself, and the roles whose operations it allows too."""
        return _INCLUDED[self]


_INCLUDED = {
    Role.READER: frozenset({Role.READER}),
    Role.WRITER: frozenset({Role.READER, Role.WRITER}),
    Role.WORKER: frozenset({Role.WORKER}),
    Role.OPERATOR: frozenset({Role.READER, Role.WRITER, Role.OPERATOR}),
    Role.ADMIN: frozenset(Role),
}


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request.

    Attributes:
        owner: the owner that it acts for; empty if nobody is authenticated, for public operations.
        roles: the roles that it was given.
        actor: its name in histories; the owner, unless several callers act for that.
        is_own: whether it is the owner or one of its team, and no administrator who reads what another owner has.
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


@dataclass(frozen=True, slots=True)
class Admins:
    """The identities that may perform operations on all owners.

    Attributes:
        names: identities as owners are named, or `EVERYBODY`.
    """

    names: frozenset[str] = frozenset()

    def include(self, caller: str) -> bool:
        """Whether an identity is one of them."""
        return caller in self.names or EVERYBODY in self.names
