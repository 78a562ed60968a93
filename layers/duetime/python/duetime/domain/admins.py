"""Who may act for all owners of a deployment."""

from __future__ import annotations

from dataclasses import dataclass

from duetime.domain.errors import OperatorRequired

EVERYBODY = "*"
"""In the list of operators, stands for every caller: for a deployment that nobody else uses."""


@dataclass(frozen=True, slots=True)
class Admins:
    """The identities that may perform operations on all owners.

    Attributes:
        names: identities as owners are named, or `EVERYBODY`.
    """

    names: frozenset[str] = frozenset()

    def include(self, caller: str) -> bool:
        """Whether the caller is an operator."""
        return caller in self.names or EVERYBODY in self.names

    def require(self, caller: str) -> None:
        """Reject a caller who is not an operator.

        Raises:
            OperatorRequired: the caller is not an operator.
        """
        if not self.include(caller):
            raise OperatorRequired
