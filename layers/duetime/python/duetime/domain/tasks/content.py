"""Content: payloads, results and checkpoints, in the record or outside it."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from duetime.domain.limits import INLINE_CONTENT_BYTES, ITEM_CONTENT_BYTES
from duetime.domain.operating_parameters import CONTENT_OUTLIVES_RECORD, UNREFERENCED_CONTENT_LIFE

if TYPE_CHECKING:
    from duetime.domain.times import Millis


_UPLOADED = "upload"


class ContentPlace(StrEnum):
    """Where content is stored, depending on its compressed size."""

    RECORD = "record"
    ITEM = "item"
    OBJECT = "object"

    @classmethod
    def for_size(cls, compressed: int) -> ContentPlace:
        """Chooses record, item or S3 storage by compressed size."""
        if compressed <= INLINE_CONTENT_BYTES:
            return cls.RECORD
        return cls.ITEM if compressed <= ITEM_CONTENT_BYTES else cls.OBJECT


@dataclass(frozen=True, slots=True)
class UploadedBytes:
    """What is known of an uploaded payload without reading it.

    Attributes:
        size: how many bytes it has.
        content_type: its content type.
    """

    size: int
    content_type: str

    @property
    def name(self) -> str:
        """The name of the content, which says it; a content type has characters that keys in S3 should not have."""
        return f"{_UPLOADED}.{self.size}.{urlsafe_b64encode(self.content_type.encode()).decode().rstrip('=')}"

    @classmethod
    def of_name(cls, name: str) -> UploadedBytes | None:
        """What such a name says; `None` for that of another content."""
        kind, _, rest = name.partition(".")
        if kind != _UPLOADED:
            return None
        size, _, encoded = rest.partition(".")
        return cls(int(size), urlsafe_b64decode(encoded + "=" * (-len(encoded) % 4)).decode())


@dataclass(frozen=True, slots=True)
class Content:
    """A payload or a result: opaque bytes (JSON text in UTF-8), in the record or outside it.

    Attributes:
        place: where the bytes are stored: in the record, in an item of their own, or in S3.
        name: name of the bytes outside the record: `payload`, `payload.<nonce>`, `result.<nonce>`, or that of an
            uploaded payload. A writer that may still be rejected (a change, an attempt) uses a name of its own, so it
            overwrites no other content.
        data: the bytes; `None` if they are outside and have not been fetched.
    """

    place: ContentPlace
    name: str
    data: bytes | None = None

    @property
    def is_outside(self) -> bool:
        """Whether the bytes are stored outside the record."""
        return self.place != ContentPlace.RECORD

    @property
    def uploaded(self) -> UploadedBytes | None:
        """Of an uploaded payload, which is stored as its bytes and not as JSON; `None` for any other content."""
        return UploadedBytes.of_name(self.name) if self.place is ContentPlace.OBJECT else None


@dataclass(frozen=True, slots=True)
class Expiry:
    """When content may be removed.

    Attributes:
        at: TTL may remove it at any later time, in any order.
        provisional: whether no record refers to the content yet, or possibly none any more. For objects in S3, which
            have no individual expiry, this selects the lifecycle rule.
    """

    at: Millis
    provisional: bool = False


def after_record(expires_at: Millis) -> Expiry:
    """The expiry of a record's content: later than the record's, because TTL does not preserve order."""
    return Expiry(expires_at + CONTENT_OUTLIVES_RECORD)


def unless_referenced(since: Millis) -> Expiry:
    """The expiry of content until a record is known to refer to it.

    Args:
        since: when it was written, or when its task is due if that is later. If the writer fails after the record was
            written and before the expiry was removed, the content still lasts for the task's likely lifetime.
    """
    return Expiry(since + UNREFERENCED_CONTENT_LIFE, provisional=True)
