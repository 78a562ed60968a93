from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duetime.domain.topologies.trigger_rules import Counts, Outcome, TriggerRule, Verdict, verdict

READY, WAIT, SKIPPED, FAILED = Verdict.READY, Verdict.WAIT, Verdict.SKIPPED, Verdict.UPSTREAM_FAILED
SITUATIONS = {
    "nothing ended": Counts(3),
    "one succeeded": Counts(3, succeeded=1),
    "one failed": Counts(3, failed=1),
    "one skipped": Counts(3, skipped=1),
    "all succeeded": Counts(3, succeeded=3),
    "all failed": Counts(3, failed=3),
    "all skipped": Counts(3, skipped=3),
    "succeeded and skipped": Counts(3, succeeded=2, skipped=1),
    "failed and skipped": Counts(3, failed=2, skipped=1),
    "one of each": Counts(3, succeeded=1, failed=1, skipped=1),
}
TABLE = {
    TriggerRule.ALL_SUCCESS: (WAIT, WAIT, FAILED, WAIT, READY, FAILED, SKIPPED, SKIPPED, FAILED, FAILED),
    TriggerRule.ALL_DONE: (WAIT, WAIT, WAIT, WAIT, READY, READY, READY, READY, READY, READY),
    TriggerRule.ONE_SUCCESS: (WAIT, READY, WAIT, WAIT, READY, FAILED, SKIPPED, READY, FAILED, READY),
    TriggerRule.ONE_FAILED: (WAIT, WAIT, READY, WAIT, SKIPPED, READY, SKIPPED, SKIPPED, READY, READY),
    TriggerRule.NONE_FAILED: (WAIT, WAIT, FAILED, WAIT, READY, FAILED, READY, READY, FAILED, FAILED),
    TriggerRule.ALWAYS: (READY,) * 10,
}


def counted(total: int, ends: list[Outcome]) -> Counts:
    """The counts for the given ends."""
    seen = Counter(ends)
    return Counts(total, seen[Outcome.SUCCEEDED], seen[Outcome.FAILED], seen[Outcome.SKIPPED])


@pytest.mark.parametrize("rule", list(TriggerRule))
def test_every_rule_gives_the_verdict_in_the_table(rule: TriggerRule) -> None:
    """In each situation of three parents, every rule gives the verdict in the table."""
    assert tuple(verdict(rule, counts) for counts in SITUATIONS.values()) == TABLE[rule]


@pytest.mark.parametrize("rule", list(TriggerRule))
def test_a_node_without_parents_starts_at_once(rule: TriggerRule) -> None:
    """A node without parents starts at once, whatever rule it has."""
    assert verdict(rule, Counts(0)) is READY


@given(st.sampled_from(TriggerRule), st.lists(st.sampled_from(Outcome), min_size=1, max_size=8))
def test_a_final_verdict_exists_after_all_ends_and_never_changes(rule: TriggerRule, ends: list[Outcome]) -> None:
    """A final verdict never changes, and there is a final verdict once all parents have ended."""
    verdicts = [verdict(rule, counted(len(ends), ends[:number])) for number in range(len(ends) + 1)]
    final = [found for found in verdicts if found is not WAIT]
    assert len(set(final)) == 1
    assert verdicts == [WAIT] * (len(verdicts) - len(final)) + final
