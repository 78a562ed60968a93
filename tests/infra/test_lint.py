"""Checks the templates with cfn-lint, which needs CloudFormation's schemas and rules but no account."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.infra.synthesis import Synthesis

REDUNDANT_DEPENDENCY = "W3005"
"""The acknowledged rule; the CDK adds a dependency on each function's role that a reference already implies."""


def findings(template: dict[str, Any]) -> list[str]:
    """Return cfn-lint's findings in a template, without findings of the acknowledged rule."""
    # Every pytest-xdist process collects these tests, but only one process runs them, and the import takes a second.
    from cfnlint import lint  # type: ignore[import-untyped]
    from cfnlint.config import ManualArgs  # type: ignore[import-untyped]

    found = lint(json.dumps(template), config=ManualArgs(ignore_checks=[REDUNDANT_DEPENDENCY]), regions=["us-east-1"])
    return [f"{match.rule.id} {match.message}" for match in found]


@pytest.mark.slow
@pytest.mark.parametrize(
    "environment", ["prod", *(pytest.param(name, marks=pytest.mark.slow) for name in ("local", "dev", "staging"))]
)
def test_cloudformation_rules_have_no_findings(synthesis_of: Callable[[str], Synthesis], environment: str) -> None:
    """cfn-lint has no findings in a template, so CloudFormation would accept it; `prod` has the most resources."""
    assert findings(synthesis_of(environment).template) == []


@pytest.mark.slow
def test_cloudformation_rules_are_checked() -> None:
    """If a resource has a property that does not exist, the same check reports the property."""
    queue = {"Type": "AWS::SQS::Queue", "Properties": {"Color": "red"}}
    (finding,) = findings({"Resources": {"Queue": queue}})
    assert "Color" in finding
