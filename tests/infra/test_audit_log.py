"""Tests that the audit log's log group has a separate retention and can only be appended to."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.infra.synthesis import Synthesis

VARIABLE = "DUETIME_AUDIT_LOG_GROUP"


@pytest.fixture
def prod(synthesis_of: Callable[[str], Synthesis]) -> Synthesis:
    """Return the environment `prod`."""
    return synthesis_of("prod")


def group_of(synthesis: Synthesis) -> str:
    """Return the logical id of the audit log's group, or an empty string if there is no such group."""
    value = synthesis.functions()["api"]["Environment"]["Variables"][VARIABLE]
    return str(value["Ref"]) if value else ""


def test_the_audit_log_group_is_retained_longer_than_other_logs(prod: Synthesis) -> None:
    """The group keeps its lines for thirteen months, and stays in the account even if the stack is deleted."""
    group = prod.of_type("AWS::Logs::LogGroup")[group_of(prod)]
    assert (group["Properties"]["RetentionInDays"], group["DeletionPolicy"]) == (400, "RetainExceptOnCreate")


def test_audit_log_lines_can_only_be_added(prod: Synthesis) -> None:
    """Only the API function can add lines; other functions have no access to the group."""
    group = group_of(prod)
    granted = {
        name: {action for each in prod.statements_of(name) if group in json.dumps(each) for action in each["Action"]}
        for name in prod.functions()
    }
    actions = {"logs:CreateLogStream", "logs:PutLogEvents"}
    assert {name: found for name, found in granted.items() if found} == {"api": actions}


def test_an_environment_without_a_retention_has_no_audit_log(every: Synthesis) -> None:
    """An environment has an audit log only if its settings have a retention for the audit log."""
    assert bool(group_of(every)) == bool(every.environment.audit_retention)
