"""The trace in which a task was created: `traceparent` of W3C Trace Context.

It is the task's creation context, which is passed on unchanged: work that starts hours later links to it, rather than
being a child of a span that ended long ago.
"""

from __future__ import annotations

import re

TRACEPARENT = "traceparent"
"""Name of the header, of the message attribute and of the field."""
_FORM = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_PRESENT = "00"
_INVALID = "ff"
_KNOWN_FLAGS = 0b11
"""Sampled, and random trace id; the others are reserved, and are sent as zero."""


def read_traceparent(text: str | None) -> str | None:
    """The creation context of a request; `None` if it is not well-formed.

    Contexts of later versions are parsed, and sent, as the present version (Source: W3C Trace Context, "Versioning of
    traceparent" and "Considerations for trace-flags field generation").
    """
    found = _FORM.fullmatch(text or "")
    if found is None:
        return None
    version, trace, parent, flags, rest = found.groups()
    is_invalid = version == _INVALID or not int(trace, 16) or not int(parent, 16)
    if is_invalid or (rest and version == _PRESENT):
        return None
    return f"{_PRESENT}-{trace}-{parent}-{int(flags, 16) & _KNOWN_FLAGS:02x}"


def trace_id_of(traceparent: str) -> str:
    """The id of the trace."""
    return traceparent.split("-")[1]
