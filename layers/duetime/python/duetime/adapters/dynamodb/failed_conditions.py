"""What DynamoDB hands back with the rejection of a conditional write."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from botocore.exceptions import ClientError

    from duetime.adapters.dynamodb.attribute_values import StoredItem


def item_of_failed_condition(refusal: ClientError) -> StoredItem | None:
    """The item that rejected a write which asked for it (`ALL_OLD`); `None` if there was none."""
    response: object = refusal.response
    # The published types of an error's response do not know this member.
    return response.get("Item") if isinstance(response, dict) else None
