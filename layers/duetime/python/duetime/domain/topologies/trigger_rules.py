"""Trigger rules, which decide when a node may start, given the outcomes of its parents.

| rule | starts when | ends as `upstream_failed` when | ends as `skipped` when |
|---|---|---|---|
| `all_success` | all succeeded | one failed | all ended, none failed, one was skipped |
| `all_done` | all ended | never | never |
| `one_success` | one succeeded | all ended, none succeeded, one failed | all were skipped |
| `one_failed` | one failed | never | all ended, none failed |
| `none_failed` | all ended, none failed | one failed | never |
| `always` | at once, regardless of its parents | never | never |

A node without parents starts at once under every rule. `one_success` and `one_failed` do not wait for the other parents
(Source: Apache Airflow, "Trigger Rules", for names and semantics).

Verdicts are stable in two ways. A verdict is final, so parents that end later do not change it. A verdict also does not
depend on the order in which parents end. For example, a skipped parent alone does not lead to a verdict, because a
later failure would lead to a different verdict.
"""

from __future__ import annotations

from enum import StrEnum

from duetime_common.frozen_classes import frozen


class TriggerRule(StrEnum):
    """The outcomes of a node's parents that allow the node to run.

    Attributes:
        ALL_SUCCESS: all parents have succeeded.
        ALL_DONE: all parents have ended, with any outcome.
        ONE_SUCCESS: one parent has succeeded; the other parents need not have ended.
        ONE_FAILED: one parent has failed; the other parents need not have ended.
        NONE_FAILED: all parents have ended, and none has failed.
        ALWAYS: the node runs at once, regardless of the outcomes.
    """

    ALL_SUCCESS = "all_success"
    ALL_DONE = "all_done"
    ONE_SUCCESS = "one_success"
    ONE_FAILED = "one_failed"
    NONE_FAILED = "none_failed"
    ALWAYS = "always"


WHATEVER_HAPPENED = frozenset({TriggerRule.ALL_DONE, TriggerRule.ALWAYS})
"""Rules under which nodes run regardless of their parents' outcomes, and therefore do not handle a parent's failure."""

AFTER_ALL = frozenset({TriggerRule.ALL_SUCCESS, TriggerRule.ALL_DONE, TriggerRule.NONE_FAILED})
"""Rules under which nodes start after the last parent if no parent fails."""


class Outcome(StrEnum):
    """Outcome of an ended parent, as seen by its children."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    SKIPPED = "skipped"


class Verdict(StrEnum):
    """Verdict of a rule on a node; all except `WAIT` are final."""

    WAIT = "wait"
    READY = "ready"
    UPSTREAM_FAILED = "upstream_failed"
    """The node can never start, because an ancestor has failed."""
    SKIPPED = "skipped"
    """The node can never start, and no ancestor has failed."""


@frozen
class Counts:
    """Counts of a node's ended parents by outcome.

    Attributes:
        total: number of parents.
    """

    total: int
    succeeded: int = 0
    failed: int = 0
    skipped: int = 0

    @property
    def ended(self) -> int:
        """Number of ended parents."""
        return self.succeeded + self.failed + self.skipped

    @property
    def is_complete(self) -> bool:
        """Whether all parents have ended."""
        return self.ended == self.total


def verdict(rule: TriggerRule, counts: Counts) -> Verdict:
    """The verdict of a rule, given the parents that have ended so far."""
    if rule is TriggerRule.ALWAYS or not counts.total:
        return Verdict.READY
    match rule:
        case TriggerRule.ONE_SUCCESS if counts.succeeded:
            return Verdict.READY
        case TriggerRule.ONE_FAILED if counts.failed:
            return Verdict.READY
        case TriggerRule.ALL_SUCCESS | TriggerRule.NONE_FAILED if counts.failed:
            return Verdict.UPSTREAM_FAILED
    return _at_the_end(rule, counts) if counts.is_complete else Verdict.WAIT


def _at_the_end(rule: TriggerRule, counts: Counts) -> Verdict:
    """The verdict when all parents have ended."""
    match rule:
        case TriggerRule.ALL_SUCCESS if counts.skipped:
            return Verdict.SKIPPED
        case TriggerRule.ONE_SUCCESS:
            return Verdict.UPSTREAM_FAILED if counts.failed else Verdict.SKIPPED
        case TriggerRule.ONE_FAILED:
            return Verdict.SKIPPED
        case _:
            return Verdict.READY
