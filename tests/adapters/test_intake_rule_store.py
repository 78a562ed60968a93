"""Tests the store of intake rules."""

from __future__ import annotations

import secrets
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from duetime.domain.errors import IntakeRulesFull
from duetime.domain.intake_rules import IntakeAction, IntakeRule, IntakeRules
from duetime.domain.limits import MAX_INTAKE_RULES, MAX_INTAKE_RULES_BYTES
from tests.adapters.examples import HOME

if TYPE_CHECKING:
    from duetime.ports.stores import IntakeRuleStore

RULE = IntakeRule(
    "order-placed",
    {"source": ["com.example.orders"]},
    IntakeAction.CREATE,
    {"type": "report", "tags": {"a": "ä"}},
    {"payload": "detail"},
    "ann",
    "why",
    HOME,
    "boss",
)


def test_intake_rules_are_stored_only_at_the_version_read(intake_rule_store: IntakeRuleStore) -> None:
    """A write that is sent twice is stored once; a write based on an earlier version is refused."""
    assert intake_rule_store.read(consistent=True) == IntakeRules()
    wanted = IntakeRules().put(RULE)
    assert intake_rule_store.save(wanted, "a")
    assert intake_rule_store.save(wanted, "a")
    assert not intake_rule_store.save(wanted, "b")
    found = intake_rule_store.read(consistent=False)
    assert found == IntakeRules({RULE.name: RULE}, 1)
    assert intake_rule_store.save(found.without(RULE.name), "c")
    assert intake_rule_store.read(consistent=True) == IntakeRules({}, 2)


def test_intake_rules_larger_than_an_item_are_rejected(intake_rule_store: IntakeRuleStore) -> None:
    """Rules that are larger than an item are refused before DynamoDB refuses them."""
    size = MAX_INTAKE_RULES_BYTES // MAX_INTAKE_RULES * 4 // 3
    many = [replace(RULE, name=str(each), description=secrets.token_urlsafe(size)) for each in range(MAX_INTAKE_RULES)]
    with pytest.raises(IntakeRulesFull, match="300000 compressed bytes"):
        intake_rule_store.save(IntakeRules({each.name: each for each in many}), "a")
