"""Identities that the settings name, such as those who may act for all owners of a deployment."""

from __future__ import annotations

from dataclasses import dataclass

EVERYBODY = "*"
"""In a list of identities, stands for every caller: for a deployment that nobody else uses."""


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
