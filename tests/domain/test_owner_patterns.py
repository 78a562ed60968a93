from __future__ import annotations

import pytest

from duetime.domain.callers import OwnerPatterns, Reservations

BILLING = "123456789012:role/Billing"


@pytest.mark.parametrize(
    ("pattern", "owner", "is_included"),
    [
        (BILLING, BILLING, True),
        (BILLING, f"{BILLING}2", False),
        (BILLING, f"x{BILLING}", False),
        ("123456789012:role/Bill*", BILLING, True),
        ("1234567890??:role/Billing", BILLING, True),
        ("*", BILLING, True),
        ("auth0|[a]", "auth0|[a]", True),
        ("auth0|[a]", "auth0|a", False),
        ("a.c", "abc", False),
    ],
)
def test_an_owner_pattern_allows_only_complete_matches(pattern: str, owner: str, is_included: bool) -> None:  # noqa: FBT001
    """Only `*` and `?` are wildcards; brackets and dots, which can be in identities, match themselves."""
    assert OwnerPatterns((pattern,)).include(owner) is is_included


def test_the_first_pattern_that_matches_decides() -> None:
    """An exception comes before the rule that it limits, and a type that matches no pattern is open to everyone."""
    reserved = Reservations(
        {
            "billing.public": OwnerPatterns(("*",)),
            "billing.*": OwnerPatterns(("bill", "bob")),
        }
    )
    assert [reserved.allow("ann", name) for name in ("billing.public", "billing.pay", "report")] == [True, False, True]
    assert reserved.allow("bob", "billing.pay")
