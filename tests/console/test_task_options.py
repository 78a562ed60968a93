"""Checks the task options in the console's source without a browser."""

from __future__ import annotations

import re

from duetime.contract.tasks.bodies import TaskCreate
from infra import ROOT

SOURCE = ROOT / "console" / "src" / "components" / "task_options.tsx"
OUTSIDE_OF_THE_OPTIONS = {
    "type": "the form of a task and that of a schedule have a field for it",
    "payload": "the form of a task and that of a schedule have a field for it",
    "name": "the form of a task has a field for it",
    "parent_task_id": "a task that a person creates was not started by another task",
    "after": "a person who creates tasks that depend on each other draws a topology",
    "trigger_rule": "it belongs to `after`",
    "delay_seconds": "the form of a task has a field for it; a schedule has no use for it",
}
"""Fields of a request that are not console options, each with the reason."""


def places() -> set[str]:
    """Return the places of all request fields and their parts; a target is one place, because its kinds differ."""
    schema = TaskCreate.model_json_schema()
    found = set()
    for name, field in schema["properties"].items():
        of = [each["$ref"].rpartition("/")[2] for each in field.get("anyOf", [field]) if "$ref" in each]
        parts = schema["$defs"][of[0]].get("properties", {}) if of and name != "target" else {}
        found |= {f"{name}.{part}" for part in parts} or {name}
    return found


def test_the_console_has_an_option_for_each_field_of_a_request() -> None:
    """Each task field is either an option in the console or listed here with the reason why it is not."""
    offered = re.findall(r'\{ path: "([a-z_.]+)", label:', SOURCE.read_text())
    assert len(offered) == len(set(offered))
    assert {*offered, *OUTSIDE_OF_THE_OPTIONS} == places()
    assert set(offered) & OUTSIDE_OF_THE_OPTIONS.keys() == set()
