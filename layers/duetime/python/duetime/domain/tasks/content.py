"""Contents: payloads, results and checkpoints, in the record or outside it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from duetime.domain.limits import INLINE_CONTENT_BYTES, ITEM_CONTENT_BYTES
from duetime.domain.operating_parameters import CONTENT_OUTLIVES_RECORD, UNREFERENCED_CONTENT_LIFE

if TYPE_CHECKING:
    from duetime.domain.times import Millis


class ContentPlace(StrEnum):
    """Where the bytes of a content lie, by their compressed size."""

    RECORD = "record"
    ITEM = "item"
    OBJECT = "object"

    @classmethod
    def for_size(cls, compressed: int) -> ContentPlace:
        """Where a content of so many compressed bytes belongs."""
        if compressed <= INLINE_CONTENT_BYTES:
            return cls.RECORD
        return cls.ITEM if compressed <= ITEM_CONTENT_BYTES else cls.OBJECT


@dataclass(frozen=True, slots=True)
class Content:
    """A payload or a result: opaque bytes (JSON text in UTF-8), in the record or outside it.

    Attributes:
        place: where the bytes lie: in the record, in an item of their own, or in S3.
        name: what the bytes are called where they lie outside: `payload`, `payload.<nonce>`, `result.<nonce>`. A
            writer that may yet be rejected (a change, an attempt) uses a name of its own and overwrites nobody's bytes.
        data: the bytes; `None` while they lie outside and have not been fetched.
    """

    place: ContentPlace
    name: str
    data: bytes | None = None

    @property
    def is_outside(self) -> bool:
        """Whether the bytes lie outside the record."""
        return self.place != ContentPlace.RECORD


@dataclass(frozen=True, slots=True)
class Expiry:
    """When a content may be removed.

    Attributes:
        at: the instant; TTL may strike at any time after it, in any order.
        provisional: no record refers to the content yet, or perhaps no more. Of an object in S3 the instant cannot
            be set: this says which lifecycle rule removes it.
    """

    at: Millis
    provisional: bool = False


def after_record(expires_at: Millis) -> Expiry:
    """The expiry of the contents of a record that expires then: later, because TTL keeps no order."""
    return Expiry(expires_at + CONTENT_OUTLIVES_RECORD)


def unless_referenced(since: Millis) -> Expiry:
    """The expiry of a content until a record is known to refer to it.

    Args:
        since: when it was written, or when its task is due if that is later. Should the writer vanish between the
            record and taking the expiry away, the content still lasts for as long as the task is likely to.
    """
    return Expiry(since + UNREFERENCED_CONTENT_LIFE, provisional=True)
