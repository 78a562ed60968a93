"""The one table of a record's attributes, used by every reader and writer of records."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from duetime.adapters.dynamodb import forms, schema, values

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from duetime.adapters.dynamodb.values import StoredItem, Value


@dataclass(frozen=True, slots=True)
class Attribute:
    """How one field of `Task` is stored.

    Attributes:
        field: its name in `Task`.
        name: its name in the item.
        encode: its value in the item; `None` leaves the attribute out, which means the field's default.
        decode: the opposite.
    """

    field: str
    name: str
    encode: Callable[[Any], Value | None]
    decode: Callable[[Value], Any]


ATTRIBUTES: dict[str, Attribute] = {
    attribute.field: attribute
    for attribute in (
        Attribute("type", "y", values.text, values.string),
        Attribute("state", "z", forms.state, forms.read_state),
        Attribute("due_at", "d", values.number, values.whole),
        Attribute("next_at", "n", values.number, values.whole),
        Attribute("created_at", "c", values.number, values.whole),
        Attribute("payload", "b", forms.content, partial(forms.read_content, "payload")),
        Attribute("priority", "q", forms.priority, forms.read_priority),
        Attribute("target", "u", forms.target, forms.read_target),
        Attribute("retry", "r", forms.retry, forms.read_retry),
        Attribute("timeout_seconds", "o", forms.unless_default("timeout_seconds"), values.whole),
        Attribute("deadline_seconds", "D", forms.unless_default("deadline_seconds"), values.whole),
        Attribute("rollback", "B", values.flag, values.truth),
        Attribute("lock", "K", forms.lock, forms.read_lock),
        Attribute("callback_url", "U", values.text, values.string),
        Attribute("name", "m", forms.name, values.string),
        Attribute("tags", "T", forms.tags, forms.read_tags),
        Attribute("occasion", "H", forms.occasion, forms.read_occasion),
        Attribute("member", "G", forms.member, forms.read_member),
        # Numbers that conditions compare are always there, zero or not: no condition needs a second form.
        Attribute("turn", "t", values.number, values.whole),
        Attribute("version", "e", values.number, values.whole),
        Attribute("fence", "k", values.number, values.whole),
        Attribute("attempt", "a", values.number, values.whole),
        Attribute("sent", "i", values.flag, values.truth),
        Attribute("nonce", "j", values.text, values.string),
        Attribute("lease_holder", "h", values.text, values.string),
        Attribute("lease_ends_at", "l", values.number, values.whole),
        Attribute("deferred_fence", "w", values.number, values.whole),
        Attribute("asked", "A", forms.asked, forms.read_asked),
        Attribute("waits_for", "W", values.text, values.string),
        Attribute("checkpoint", "C", forms.content, partial(forms.read_content, "checkpoint")),
        Attribute("progress", "P", forms.progress, forms.read_progress),
        Attribute("result", "R", forms.content, partial(forms.read_content, "result")),
        Attribute("error", "E", forms.error, forms.read_error),
        Attribute("started_at", "S", values.number, values.whole),
        Attribute("run_at", "N", values.number, values.whole),
        Attribute("finished_at", "F", values.number, values.whole),
        Attribute("expires_at", schema.TTL, values.expiry, values.read_expiry),
        Attribute("ledger", "L", forms.ledger, forms.read_ledger),
        Attribute("reopened_fence", "J", values.number, values.whole),
    )
}
"""Every field of `Task` but `id` and `owner`, which are the keys."""


def encoded(field: str, value: object) -> Value | None:
    """One field's value as it is stored; `None` if it is left out."""
    return None if value is None else ATTRIBUTES[field].encode(value)


def decoded(item: StoredItem, fields: Iterable[str]) -> dict[str, Any]:
    """The values of those of the fields that the item has."""
    found = {}
    for field in fields:
        attribute = ATTRIBUTES[field]
        if (stored := item.get(attribute.name)) is not None:
            found[field] = attribute.decode(stored)
    return found
