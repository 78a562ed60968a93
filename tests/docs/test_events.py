from __future__ import annotations

from docs.sections.events import schema_of
from duetime.domain.changes.events import EventKind


def test_every_field_of_an_event_is_described() -> None:
    """With its type, and a sentence."""
    for kind in EventKind:
        schema = schema_of(kind)
        assert schema["required"] == list(schema["properties"])
        for name, told in schema["properties"].items():
            assert told["type"], (kind, name)
            assert told["description"].endswith("."), (kind, name)
