"""Which owners may use something: patterns of owners, and what is reserved for some of them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from duetime.domain.wildcards import wildcard_matcher

if TYPE_CHECKING:
    from collections.abc import Mapping


@dataclass(frozen=True, slots=True)
class OwnerPatterns:
    """Owners by patterns.

    Attributes:
        patterns: owners in which `*` stands for any characters and `?` for one; `*` alone is everybody.
    """

    patterns: tuple[str, ...] = ()

    def include(self, owner: str) -> bool:
        """Whether a pattern matches the owner."""
        return any(wildcard_matcher(pattern).fullmatch(owner) for pattern in self.patterns)


@dataclass(frozen=True, slots=True)
class Reservations:
    """What is reserved for some owners; everything else is free to all.

    Attributes:
        by_pattern: patterns of types or ARNs, with the owners; the first pattern that matches decides.
    """

    by_pattern: Mapping[str, OwnerPatterns] = field(default_factory=dict)

    def allow(self, owner: str, name: str) -> bool:
        """Whether an owner may use a type or ARN."""
        owners = (owners for pattern, owners in self.by_pattern.items() if wildcard_matcher(pattern).fullmatch(name))
        first = next(owners, None)
        return first is None or first.include(owner)
