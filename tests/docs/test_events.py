from __future__ import annotations

import json

from docs.generate import REFERENCE
from docs.sections.events import event_kinds, schema_of, schemas
from duetime.domain.change_events import EventKind


def test_every_field_of_an_event_is_described() -> None:
    """Every field of an event has a type and a description."""
    for kind in EventKind:
        schema = schema_of(kind)
        assert schema["required"] == list(schema["properties"])
        for name, described in schema["properties"].items():
            assert described["type"], (kind, name)
            assert described["description"].endswith("."), (kind, name)


def test_the_file_of_event_schemas_is_up_to_date() -> None:
    """`docs/reference/events.json` has each kind's schema; run `python docs/generate.py` if this test fails."""
    text = (REFERENCE / "events.json").read_text(encoding="utf-8")
    assert text == schemas()
    assert set(json.loads(text)) == {kind.value for kind in EventKind}


def test_an_event_kind_with_the_same_fields_refers_to_the_other() -> None:
    """The page lists the same fields only once, while each schema describes all its fields."""
    kinds = event_kinds()
    assert "those of `duetime.task.ended.v1` except `error_type`" in kinds
    assert kinds.count("`lateness_ms`") == 1
