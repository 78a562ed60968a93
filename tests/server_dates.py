"""Lets tests run at a different time than the servers by ignoring the times in responses."""

from __future__ import annotations

from typing import Any

from botocore import handlers


def drop_server_dates() -> None:
    """Ignore the time in DynamoDB's responses, in all sessions that this process creates from now on."""
    entry = ("after-call.dynamodb", _without_date)
    if entry not in handlers.BUILTIN_HANDLERS:
        handlers.BUILTIN_HANDLERS.append(entry)


def _without_date(parsed: dict[str, Any], **_rest: object) -> None:
    parsed.get("ResponseMetadata", {}).get("HTTPHeaders", {}).pop("date", None)
