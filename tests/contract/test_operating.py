"""Tests that the document and the code agree on switches, circuits and actions by filter."""

from __future__ import annotations

import json
from typing import Any

from duetime.contract.bulk.operations import filter_action_response
from duetime.contract.switches import switch_response, switches_response
from duetime.contract.tasks.encoding import json_text
from duetime.domain.bulk import FilterResult
from duetime.domain.circuit_breakers import Circuit, CircuitState
from duetime.domain.errors import StateConflict
from duetime.domain.switches import Switch, SwitchKey, SwitchScope
from tests.contract.test_openapi import SCHEMAS, fits
from tests.domain.factories import ID, NOW
from tests.functions.api.test_filter_actions import BAD as BAD_SWEEPS
from tests.functions.api.test_filter_actions import CANCEL, RENAME, REPORTS
from tests.functions.api.test_switches import BAD as BAD_SWITCHES
from tests.functions.api.test_switches import CAP, STOP

STOPPED = Switch(SwitchKey(SwitchScope.TYPE, "report"), stopped=True, updated_at=NOW, updated_by="ann")
# JSON Schema cannot express control characters, tokens and owners, and treats 2.0 as an integer.
CODE_ALONE_SEES = (
    "a b",
    "report\\n",
    "a#b",
    "\\u0430nn",
    "\\u001b",
    "\\u0000",
    "x" * 65,
    "x" * 129,
    "yesterday",
    "nonsense",
    "2.0",
)
NEEDS_CODE: tuple[dict[str, Any], ...] = ({"filter": {"state": "succeeded"}}, {"filter": {}})


def says_in_words(body: Any) -> bool:  # noqa: ANN401 - any JSON
    """Return whether a body is refused for mutually exclusive fields, which are documented only in descriptions."""
    if "scope" in body:
        return (body["scope"] == "everything") == bool(body.get("name")) or "max_concurrent" in body
    return {"due_at", "delay_seconds"} <= set(body.get("update", ()))


def test_responses_are_valid_by_the_document() -> None:
    """A switch, the list of switches, and the result of an action by filter validate against the document."""
    circuits = [(Circuit("ann", "example.org").opened("Http503", NOW), CircuitState.OPEN)]
    assert fits("Switch", json.loads(json_text(switch_response(STOPPED))))
    assert fits("SwitchList", json.loads(json_text(switches_response([STOPPED], circuits))))
    swept = filter_action_response(FilterResult(5, 4, 3, {StateConflict: 1}, ID), "scope")
    assert swept["refused"] == {"state_conflict": 1}
    assert fits("FilterActionResult", json.loads(json_text(swept)))


def test_switches_are_rejected_as_documented() -> None:
    """The document accepts valid switches, and refuses switches that the code refuses."""
    for good in (STOP, CAP, {**STOP, "scope": "type", "name": "report"}):
        assert fits("SwitchPut", good), good
    allowed = [body for body, _ in BAD_SWITCHES if fits("SwitchPut", body)]
    strange = [body for body in allowed if not any(text in json.dumps(body) for text in CODE_ALONE_SEES)]
    assert [body for body in strange if not says_in_words(body)] == []


def test_actions_by_filter_are_rejected_as_documented() -> None:
    """The document refuses actions by filter that the code refuses, and their fields have descriptions or choices."""
    assert fits("BulkCancel", {**REPORTS, "per_second": 0.5, "next_token": None})
    assert fits("BulkUpdate", RENAME)
    models = {True: "BulkCancel", False: "BulkUpdate"}
    allowed = [body for path, body, _ in BAD_SWEEPS if fits(models[path == CANCEL], body)]
    strange = [body for body in allowed if not any(text in json.dumps(body) for text in CODE_ALONE_SEES)]
    assert [body for body in strange if body not in NEEDS_CODE and not says_in_words(body)] == []
    for model in ("BulkCancel", "BulkUpdate", "OpenTaskFilter", "SwitchPut"):
        assert SCHEMAS[model]["additionalProperties"] is False
        assert all(field.get("description") or field.get("anyOf") for field in SCHEMAS[model]["properties"].values())
