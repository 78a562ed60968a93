from __future__ import annotations

import pytest

from duetime.adapters.dynamodb import field_codecs
from duetime.domain.ids import read_traceparent, trace_id_of

TRACE, PARENT = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"


@pytest.mark.parametrize("flags", ["00", "01", "02", "03"])
def test_a_valid_traceparent_is_stored_and_read_back_unchanged(flags: str) -> None:
    """A traceparent is stored in 25 bytes and read back unchanged."""
    text = f"00-{TRACE}-{PARENT}-{flags}"
    assert read_traceparent(text) == text
    assert trace_id_of(text) == TRACE
    stored = field_codecs.traceparent(text)
    assert len(stored["B"]) == 25
    assert field_codecs.read_traceparent(stored) == text


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "x",
        f"ff-{TRACE}-{PARENT}-01",
        f"00-{'0' * 32}-{PARENT}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE.upper()}-{PARENT}-01",
        f"00-{TRACE}-{PARENT}-01-more",
        f"00-{TRACE}-{PARENT}-01-",
        f"00-{TRACE}-{PARENT}-1",
        f"00-{TRACE}-{PARENT}-01,00-{TRACE}-{PARENT}-01",
        f"00-{TRACE}-{PARENT}-01\n",
        f"cc-{TRACE}-{PARENT}-01.more",
        f"00-{'٣' * 32}-{PARENT}-01",
        "0" * 100_000,
    ],
)
def test_an_invalid_traceparent_is_ignored(text: str | None) -> None:
    """An invalid traceparent is ignored, as the standard requires."""
    assert read_traceparent(text) is None


@pytest.mark.parametrize("rest", ["", "-what-the-future-will-bring"])
def test_a_traceparent_of_a_later_version_is_read_in_part(rest: str) -> None:
    """From a later version's traceparent, only the parts known to this version are read; reserved flags become zero."""
    assert read_traceparent(f"cc-{TRACE}-{PARENT}-ff{rest}") == f"00-{TRACE}-{PARENT}-03"
