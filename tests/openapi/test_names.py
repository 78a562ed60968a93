"""Tests that names of operations and models in generated clients use one noun per thing and one verb per action."""

from __future__ import annotations

import json
import re
from itertools import combinations
from typing import Any

import pytest

from duetime.contract.openapi import descriptions
from duetime.contract.openapi.document import OPERATIONS, document

DOCUMENT: dict[str, Any] = json.loads(json.dumps(document()))
SCHEMAS = DOCUMENT["components"]["schemas"]
VERBS = {
    *("create", "list", "get", "update", "delete", "put", "preview"),
    *("pin", "unpin", "reset"),
    *("cancel", "pause", "resume", "run", "retry", "delete", "rollback", "query", "report", "signal", "send"),
    *("acquire", "renew", "complete", "fail", "release", "acknowledge", "explain", "revoke", "use", "close"),
}
VAGUE = re.compile(r"(Response|Answer|Entry|Many|Ref|Fields|Body|Kind|Spec)$")


def differs_by_one_letter(one: str, other: str) -> bool:
    """Return whether two names differ only by one additional or different letter."""
    short, long = sorted((one, other), key=len)
    if len(long) == len(short):
        return sum(a != b for a, b in zip(one, other, strict=True)) == 1
    return len(long) == len(short) + 1 and any(long[:n] + long[n + 1 :] == short for n in range(len(long)))


def test_every_operation_id_starts_with_a_known_verb() -> None:
    """Each operation id starts with a verb that has the same meaning everywhere."""
    verbs = {re.split("(?=[A-Z])", operation.id)[0] for operation in OPERATIONS}
    assert verbs <= VERBS


def test_no_two_operation_ids_differ_in_only_one_letter() -> None:
    """No two operation ids differ in only one letter."""
    ids = [operation.id for operation in OPERATIONS]
    assert [pair for pair in combinations(ids, 2) if differs_by_one_letter(*pair)] == []


def test_model_names_are_specific_nouns() -> None:
    """No model is named after its role in the code, or by a word that could mean anything."""
    allowed = {"BulkOperationKind"}
    assert {name for name in SCHEMAS if VAGUE.search(name)} <= allowed
    assert {"State", "Cause", "Retry", "Gap", "Fold", "Overlap", "Priority"} & set(SCHEMAS) == set()


def test_responses_with_a_page_token_are_named_pages() -> None:
    """Every response with a page token is named `...Page`, except the response of an action by filter."""
    paged = {name for name, schema in SCHEMAS.items() if "next_token" in schema.get("properties", {})}
    requests = {"BulkCancel", "BulkDelete", "BulkUpdate", "BulkRetry", "FilterActionResult"}
    assert paged - requests == {name for name in SCHEMAS if name.endswith("Page")}


def test_each_name_in_the_table_belongs_to_a_model_in_use() -> None:
    """The table of names has no entry for a model that was renamed or removed."""
    assert {name for name in descriptions.NAMES.values() if name not in SCHEMAS} == set()


def test_two_models_with_one_name_are_an_error() -> None:
    """If two models have the same name, building the document fails, so no client ever sees such a document."""
    with pytest.raises(ValueError, match="two models are called Task"):
        descriptions.renamed({"Task": {}, "TaskResponse": {}})
    assert descriptions.reference("TaskResponse") == {"$ref": "#/components/schemas/Task"}
