"""The reasons for which an occurrence did not run, as short names for what the API says in words."""

from __future__ import annotations

_WORDS = {
    "dst_gap": ("not exist on",),
    "overlap": ("still going", "takes its place"),
    "paused": ("is paused",),
    "changed": ("was changed",),
    "deleted": ("was deleted",),
    "catch_up": ("missed",),
}
"""What the API's reason contains, one of these, by the name of the reason."""


def is_reason(wanted: str, said: str | None) -> bool:
    """Whether a reason is meant: by its short name, or by a part of the API's words, such as a calendar's label."""
    return any(words in (said or "") for words in _WORDS.get(wanted, (wanted,)))


def names() -> str:
    """The short names."""
    return ", ".join(_WORDS)
