"""JSON Merge Patch (RFC 7396), as updates apply it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_KIND = "kind"
_BODY = "body"


def merged(before: Mapping[str, Any], patch: Mapping[str, Any], opaque: Sequence[str] = ()) -> dict[str, Any]:
    """An object after a merge patch: null removes a field, an object is merged, anything else replaces.

    An object with a `kind` is replaced by one of another kind, for the fields of the two have nothing in common. The
    `body` of such an object holds any JSON, and is replaced as a whole.

    Args:
        before: the object as it is.
        patch: what to change of it.
        opaque: fields whose values are replaced as a whole, null included.
    """
    after = dict(before)
    for name, value in patch.items():
        if name in opaque or (name == _BODY and value is not None and _KIND in before):
            after[name] = value
        elif value is None:
            after.pop(name, None)
        elif isinstance(value, Mapping):
            known = before.get(name)
            is_same = isinstance(known, Mapping) and value.get(_KIND, known.get(_KIND)) == known.get(_KIND)
            after[name] = merged(known if is_same and isinstance(known, Mapping) else {}, value)
        else:
            after[name] = value
    return after
