"""Who may act for all owners of a deployment."""

from __future__ import annotations

from dataclasses import dataclass

from duetime.domain.errors import OperatorRequired

EVERYBODY = "*"
"""Stands for every caller among the names of operators: for a deployment that is nobody else's."""


@dataclass(frozen=True, slots=True)
class Admins:
    """The identities that may do what concerns all owners.

    Attributes:
        names: identities as owners are named, or `EVERYBODY`.
    """

    names: frozenset[str] = frozenset()

    def include(self, caller: str) -> bool:
        """Whether a caller is one of them."""
        return caller in self.names or EVERYBODY in self.names

    def require(self, caller: str) -> None:
        """Reject everybody else.

        Raises:
            OperatorRequired: the caller is none of them.
        """
        if not self.include(caller):
            raise OperatorRequired
