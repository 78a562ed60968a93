"""When a node may start, given how its parents ended.

| rule | starts when | ends as `upstream_failed` when | ends as `skipped` when |
|---|---|---|---|
| `all_success` | all succeeded | one failed | all ended, none failed, one was skipped |
| `all_done` | all ended | never | never |
| `one_success` | one succeeded | all ended, none succeeded, one failed | all were skipped |
| `one_failed` | one failed | never | all ended, none failed |
| `none_failed` | all ended, none failed | one failed | never |
| `always` | at once, whatever its parents do | never | never |

A node without parents starts at once under every rule. `one_success` and `one_failed` do not wait for the other
parents (Source: Apache Airflow, "Trigger Rules", whose names and meanings these are).

In two ways it matters that a decision never changes. It stands once it is made: more ends make no other of it. And it
does not depend on the order in which parents ended: a skipped parent alone decides nothing, because a failure that is
still to come would make another end of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class TriggerRule(StrEnum):
    """How the parents of a node must have ended for it to run.

    Attributes:
        ALL_SUCCESS: all have succeeded.
        ALL_DONE: all have ended, in whatever way.
        ONE_SUCCESS: one has succeeded; the others need not have ended.
        ONE_FAILED: one has failed; the others need not have ended.
        NONE_FAILED: all have ended, and none has failed.
        ALWAYS: at once, however they end.
    """

    ALL_SUCCESS = "all_success"
    ALL_DONE = "all_done"
    ONE_SUCCESS = "one_success"
    ONE_FAILED = "one_failed"
    NONE_FAILED = "none_failed"
    ALWAYS = "always"


WHATEVER_HAPPENED = frozenset({TriggerRule.ALL_DONE, TriggerRule.ALWAYS})
"""Rules of nodes that run however their parents end: that they ran says nothing about a parent's failure."""

AFTER_ALL = frozenset({TriggerRule.ALL_SUCCESS, TriggerRule.ALL_DONE, TriggerRule.NONE_FAILED})
"""Rules of nodes that start after the last of their parents, if none of these fails."""


class Outcome(StrEnum):
    """What an ended parent counts as at its children."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    SKIPPED = "skipped"


class Verdict(StrEnum):
    """What a rule says of a node; all but `WAIT` are final."""

    WAIT = "wait"
    READY = "ready"
    UPSTREAM_FAILED = "upstream_failed"
    """It can never start, because of a failure above it."""
    SKIPPED = "skipped"
    """It can never start, and nothing above it has failed."""


@dataclass(frozen=True, slots=True)
class Counts:
    """How many of a node's parents have ended, and as what.

    Attributes:
        total: how many parents there are.
    """

    total: int
    succeeded: int = 0
    failed: int = 0
    skipped: int = 0

    @property
    def ended(self) -> int:
        """How many have ended."""
        return self.succeeded + self.failed + self.skipped

    @property
    def is_complete(self) -> bool:
        """Whether all have ended."""
        return self.ended == self.total


def verdict(rule: TriggerRule, counts: Counts) -> Verdict:
    """What a rule says of a node whose parents have ended so far as counted."""
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
    """What is left to be said once all parents have ended."""
    match rule:
        case TriggerRule.ALL_SUCCESS if counts.skipped:
            return Verdict.SKIPPED
        case TriggerRule.ONE_SUCCESS:
            return Verdict.UPSTREAM_FAILED if counts.failed else Verdict.SKIPPED
        case TriggerRule.ONE_FAILED:
            return Verdict.SKIPPED
        case _:
            return Verdict.READY
