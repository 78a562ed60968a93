"""Tests how a change set affects resources with data (`DescribeChangeSet`, CloudFormation API Reference)."""

from __future__ import annotations

from typing import Any

import pytest

from duetime_client.stack_changes import Loss, changes_of


def described(**resource: Any) -> dict[str, Any]:  # noqa: ANN401 - as in the API
    """Return a response with one change."""
    facts = {"Action": "Modify", "LogicalResourceId": "TablesTasks80F1", "ResourceType": "AWS::DynamoDB::Table"}
    return {"Changes": [{"Type": "Resource", "ResourceChange": {**facts, **resource}}]}


def target(name: str, recreation: str, attribute: str = "Properties") -> dict[str, Any]:
    """Return a change's detail."""
    return {
        "Target": {"Attribute": attribute, "Name": name, "RequiresRecreation": recreation},
        "Evaluation": "Static",
        "ChangeSource": "DirectModification",
    }


@pytest.mark.parametrize(
    ("resource", "loss"),
    [
        ({"Action": "Add"}, None),
        ({"Action": "Import"}, None),
        ({"Replacement": "False"}, None),
        ({}, None),
        ({"Replacement": "True", "PolicyAction": "ReplaceAndDelete"}, Loss.REPLACED),
        ({"Replacement": "True"}, Loss.REPLACED),
        ({"Replacement": "True", "PolicyAction": "ReplaceAndRetain"}, Loss.REPLACED_AND_KEPT),
        ({"Replacement": "True", "PolicyAction": "ReplaceAndSnapshot"}, Loss.REPLACED_AND_KEPT),
        ({"Replacement": "Conditional", "PolicyAction": "ReplaceAndRetain"}, Loss.UNCERTAIN),
        ({"Action": "Remove", "PolicyAction": "Delete"}, Loss.DELETED),
        ({"Action": "Remove"}, Loss.DELETED),
        ({"Action": "Remove", "PolicyAction": "Retain"}, Loss.ABANDONED),
        ({"Action": "Remove", "PolicyAction": "Snapshot"}, Loss.ABANDONED),
        ({"Action": "Dynamic"}, Loss.UNCERTAIN),
    ],
)
def test_actions_on_a_table_that_lose_data_are_recognized(resource: dict[str, Any], loss: Loss | None) -> None:
    """A retained resource also counts as a loss, because the stack's new table is empty; so do uncertain cases."""
    changes = changes_of([described(**resource)])
    assert [each.loss for each in changes.losses] == ([loss] if loss else [])


def test_replacing_a_function_is_not_a_loss() -> None:
    """A confirmation is needed only if data, an address or running work would be lost."""
    changes = changes_of([described(ResourceType="AWS::Lambda::Function", Replacement="True")])
    assert changes.losses == []
    assert changes.counts() == {"replaced": 1}


def test_a_loss_names_the_resource_and_the_property() -> None:
    """A loss names the resource by its physical name, which a user can look up."""
    details = [
        target("KeySchema", "Always"),
        target("Tags", "Never", "Tags"),
        target("", "Conditionally", "Properties"),
    ]
    changes = changes_of(
        [described(Replacement="True", PolicyAction="ReplaceAndDelete", PhysicalResourceId="tasks-1", Details=details)]
    )
    (line,) = changes.loss_lines()
    assert line.startswith("AWS::DynamoDB::Table tasks-1 is replaced by an empty one, and deleted")
    assert "(KeySchema, Properties changes)" in line
    assert "tasks, schedules" in line


def test_all_pages_of_a_change_set_are_read() -> None:
    """All pages of a large change set are read, changes of other kinds are left out, and removals come first."""
    pages = [
        described(Action="Add", LogicalResourceId="B", ResourceType="AWS::SQS::Queue"),
        {"Changes": [{"Type": "Hook"}]},
        {},
        described(Action="Remove", LogicalResourceId="A", ResourceType="AWS::SNS::Topic"),
    ]
    changes = changes_of(pages)
    assert changes.counts() == {"added": 1, "removed": 1}
    assert changes.lines() == ["removed   AWS::SNS::Topic  A", "added     AWS::SQS::Queue  B"]
