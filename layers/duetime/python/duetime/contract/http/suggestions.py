"""What a client probably meant by a name that is not known. Imported when there is such a name, and not before."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

_LIKENESS = 0.75
"""From this on two names are taken for the same one misspelt (Source: `difflib`, a ratio from 0 to 1)."""
_LONGEST = 64
_CAPITAL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_BRACKETS = re.compile(r"\[.*\]$")

_DUE = ("due_at", "start_at", "scheduled_at")
_DELAY = ("delay_seconds",)
_ATTEMPTS = ("max_attempts", "retry.max_attempts")
_URL = ("url", "target.url")
_PAGE_TOKEN = ("next_token",)
_LIMIT = ("limit",)
_ALIASES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("at", "run_at", "eta", "scheduled_for", "schedule_at", "when", "execute_at", "time"), _DUE),
    **dict.fromkeys(("delay", "countdown", "in", "after", "delay_ms"), _DELAY),
    **dict.fromkeys(("max_retries", "retries", "retry_count", "attempts", "max_tries"), _ATTEMPTS),
    **dict.fromkeys(("endpoint", "webhook", "http_url", "target_url", "uri"), _URL),
    "url": ("target.url",),
    **dict.fromkeys(("callback", "webhook_url", "notify_url"), ("callback_url",)),
    **dict.fromkeys(("page", "cursor", "offset", "page_token", "after_token", "next", "token"), _PAGE_TOKEN),
    **dict.fromkeys(("page_size", "per_page", "size", "max_results", "count", "max"), _LIMIT),
    **dict.fromkeys(("sort", "order_by", "sort_by", "direction"), ("order",)),
    **dict.fromkeys(("fields", "include", "select", "embed"), ("expand",)),
    **dict.fromkeys(("status", "phase"), ("state",)),
    **dict.fromkeys(("id", "task_id", "task_ids"), ("ids",)),
    **dict.fromkeys(("labels", "label", "metadata", "attributes"), ("tags", "tag")),
    "tags": ("tag",),
    "tag": ("tags",),
    **dict.fromkeys(("body", "data", "input", "args", "kwargs", "params", "message"), ("payload",)),
    **dict.fromkeys(("task", "task_name", "task_type", "job", "job_type", "handler", "function"), ("type",)),
    **dict.fromkeys(("timeout", "ttl", "timeout_ms", "time_limit"), ("timeout_seconds",)),
    **dict.fromkeys(("expires", "expires_in", "expiry", "start_within_seconds"), ("expires_seconds",)),
    **dict.fromkeys(("deadline", "deadline_seconds"), ("notify_within_seconds", "timeout_seconds")),
    **dict.fromkeys(("backoff", "initial_delay", "retry_delay", "backoff_seconds"), ("initial_seconds", "retry")),
    **dict.fromkeys(("max_delay", "max_backoff"), ("max_seconds", "retry.max_seconds")),
    **dict.fromkeys(("tz", "zone", "time_zone"), ("timezone",)),
    **dict.fromkeys(("cron_expression", "crontab", "schedule_expression", "expression"), ("cron",)),
    **dict.fromkeys(("every", "period"), ("rate", "interval")),
    **dict.fromkeys(("note", "comment"), ("reason",)),
    **dict.fromkeys(("wait", "wait_for"), ("wait_seconds",)),
    **dict.fromkeys(("depends_on", "dependencies", "needs", "upstream"), ("parents", "after")),
    **dict.fromkeys(("error", "error_class"), ("error_type",)),
    **dict.fromkeys(("from", "since", "due_from"), ("due_after", "scheduled_after")),
    **dict.fromkeys(("to", "until", "due_to"), ("due_before", "scheduled_before")),
}
"""Names that other schedulers use, or that are usual elsewhere: what each may be called here, the likeliest first."""


def suggestion(name: str, known: Collection[str]) -> str | None:
    """The known name that was probably meant, with a dot before a field of a field; nothing if none is near."""
    if len(name) > _LONGEST:
        return None
    plain = _CAPITAL.sub("_", _BRACKETS.sub("", name)).replace("-", "_").lower()
    if plain in known:
        return plain
    usual = (each for each in _ALIASES.get(plain, ()) if each.partition(".")[0] in known)
    return next(usual, None) or next(iter(get_close_matches(plain, known, 1, _LIKENESS)), None)
