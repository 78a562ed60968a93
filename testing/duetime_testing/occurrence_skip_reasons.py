"""Short names for the API's reasons why an occurrence did not run."""

from __future__ import annotations

_WORDS = {
    "dst_gap": ("not exist on",),
    "overlap": ("still running", "replaces it"),
    "paused": ("is paused",),
    "changed": ("was changed",),
    "deleted": ("was deleted",),
    "catch_up": ("missed",),
}
"""Phrases in the API's reasons, by each reason's short name."""


def is_reason(wanted: str, said: str | None) -> bool:
    """Whether a reason matches a short name or a part of the API's text, such as a calendar's label."""
    return any(words in (said or "") for words in _WORDS.get(wanted, (wanted,)))


def names() -> str:
    """The short names."""
    return ", ".join(_WORDS)
