"""How long ended tasks are kept."""

from __future__ import annotations

from duetime.domain.retention import RetentionPolicy


def test_the_first_pattern_that_matches_decides() -> None:
    """In the order of the setting; a type that none matches has the default."""
    policy = RetentionPolicy(30, {"audit.login": 90, "audit.*": 400, "pin?": 2})
    found = {each: policy.of(each) for each in ("audit.login", "audit.logout", "ping", "pings", "report")}
    assert found == {"audit.login": 90, "audit.logout": 400, "ping": 2, "pings": 30, "report": 30}


def test_the_shortest_and_longest_count_the_default() -> None:
    """It applies to some types, too."""
    policy = RetentionPolicy(30, {"audit.*": 400, "ping": 2})
    assert (policy.shortest, policy.longest, policy.is_by_type) == (2, 400, True)
    assert (RetentionPolicy(30, {"ping": 50}).shortest, RetentionPolicy(30, {"ping": 2}).longest) == (30, 30)
    assert (RetentionPolicy(30).shortest, RetentionPolicy(30).longest, RetentionPolicy(30).is_by_type) == (
        30,
        30,
        False,
    )
