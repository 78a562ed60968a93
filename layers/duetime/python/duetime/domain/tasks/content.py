"""Contents: payloads, results and checkpoints, in the record or outside it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from duetime.domain.record_limits import INLINE_CONTENT_BYTES, ITEM_CONTENT_BYTES


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
