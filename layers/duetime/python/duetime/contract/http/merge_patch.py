"""JSON Merge Patch (RFC 7396) for updates."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_KIND = "kind"
_BODY = "body"


def merged(before: Mapping[str, Any], patch: Mapping[str, Any], opaque: Sequence[str] = ()) -> dict[str, Any]:
    """Applies a merge patch to an object: null removes a field, objects are merged, other values replace.

    An object with a `kind` is replaced by one of another kind, because the two have no fields in common. The `body` of
    such an object can be any JSON, and is replaced as a whole.

    Args:
        before: the present object.
        patch: the changes.
        opaque: fields whose values are replaced as a whole, including null.
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
