"""Tests at a time of their own: the servers that they ask live today, so what these say of the time is dropped."""

from __future__ import annotations

from typing import Any

from botocore import handlers


def drop_server_dates() -> None:
    """Let answers of DynamoDB say nothing of the time, in all sessions that are made in this process from now on."""
    entry = ("after-call.dynamodb", _without_date)
    if entry not in handlers.BUILTIN_HANDLERS:
        handlers.BUILTIN_HANDLERS.append(entry)


def _without_date(parsed: dict[str, Any], **_rest: object) -> None:
    parsed.get("ResponseMetadata", {}).get("HTTPHeaders", {}).pop("date", None)
