"""What cfn-lint says of the templates: CloudFormation's schemas and rules, as far as no account is needed to check."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.infra.synthesis import Synthesis

REDUNDANT_DEPENDENCY = "W3005"
"""The CDK has each function depend on its role and on the role's policy: the first follows from the reference."""


def findings(template: dict[str, Any]) -> list[str]:
    """What cfn-lint finds in a template, but for what is acknowledged here."""
    # Every process of pytest-xdist collects these tests, and one of them runs them: the import takes a second.
    from cfnlint import lint  # type: ignore[import-untyped]
    from cfnlint.config import ManualArgs  # type: ignore[import-untyped]

    found = lint(json.dumps(template), config=ManualArgs(ignore_checks=[REDUNDANT_DEPENDENCY]), regions=["us-east-1"])
    return [f"{match.rule.id} {match.message}" for match in found]


@pytest.mark.slow
@pytest.mark.parametrize(
    "environment", ["prod", *(pytest.param(name, marks=pytest.mark.slow) for name in ("local", "dev", "staging"))]
)
def test_cloudformation_rules_find_nothing(synthesis_of: Callable[[str], Synthesis], environment: str) -> None:
    """The template of each environment is one that CloudFormation would take; that of prod has the most."""
    assert findings(synthesis_of(environment).template) == []


@pytest.mark.slow
def test_cloudformation_rules_are_checked() -> None:
    """The same check finds a property that does not exist."""
    queue = {"Type": "AWS::SQS::Queue", "Properties": {"Colour": "red"}}
    (finding,) = findings({"Resources": {"Queue": queue}})
    assert "Colour" in finding
