"""What DynamoDB hands back with the rejection of a conditional write."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from botocore.exceptions import ClientError

    from duetime.adapters.dynamodb.attribute_values import StoredItem

_OTHERS_CAME_FIRST = frozenset({"ConditionalCheckFailed", "TransactionConflict"})
"""Reasons for which a transaction is cancelled, and nothing of it done."""


def item_of_failed_condition(refusal: ClientError) -> StoredItem | None:
    """The item that rejected a write which asked for it (`ALL_OLD`); `None` if there was none."""
    response: object = refusal.response
    # The published types of an error's response do not know this member.
    return response.get("Item") if isinstance(response, dict) else None


def is_lost_race(refusal: ClientError) -> bool:
    """Whether a transaction was cancelled only because of what others had written, or were writing."""
    response: Any = refusal.response  # the published types do not know this member
    reasons = {reason.get("Code", "None") for reason in response.get("CancellationReasons", [])} - {"None"}
    return bool(reasons) and reasons <= _OTHERS_CAME_FIRST
