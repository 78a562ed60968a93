"""When what lies outside a record may be removed: never before somebody may need it, and never not at all."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.operating_parameters import CONTENT_OUTLIVES_RECORD, UNREFERENCED_CONTENT_LIFE

if TYPE_CHECKING:
    from duetime.domain.times import Millis


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
