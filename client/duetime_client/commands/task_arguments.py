"""From the words of a command line to the fields of a request."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

import typer

from duetime_client.commands.targets import NO_AWS, AwsOptions, target_of
from duetime_client.commands.times import moment_of, seconds_of_span

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from duetime_client.commands.clock import Clock
    from duetime_client.task_fields import Priority, TaskFields, TaskFilter


def task_fields(  # noqa: PLR0913 - one parameter for each option that create and change share
    clock: Clock,
    *,
    payload: str | None,
    at: str | None,
    delay: str | None,
    priority: Priority | None,
    name: str | None,
    tags: Sequence[str],
    http_url: str | None,
    http_phases: Sequence[str],
    http_queries: Sequence[str] = (),
    aws: AwsOptions = NO_AWS,
    callback_url: str | None = None,
    max_attempts: int | None,
    timeout: int | None,
    deadline: int | None,
    rollback: bool | None,
    lock: str | None,
    lock_limit: int | None,
) -> TaskFields:
    """The fields that the options give; what no option gives is absent."""
    fields = due_fields(clock, at, delay)
    if payload is not None:
        fields["payload"] = json_of(payload)
    if priority is not None:
        fields["priority"] = priority
    if name is not None:
        fields["name"] = name
    if tags:
        fields["tags"] = tags_of(tags)
    if target := target_of(http_url, http_phases, http_queries, aws):
        fields["target"] = target
    if callback_url is not None:
        fields["callback_url"] = callback_url or None
    if lock is not None:
        fields["lock"] = {"key": lock} if lock_limit is None else {"key": lock, "limit": lock_limit}
    elif lock_limit is not None:
        raise typer.BadParameter("needs --lock", param_hint="--lock-limit")
    fields.update(attempt_fields(max_attempts, timeout, deadline, rollback=rollback))
    return fields


def attempt_fields(
    max_attempts: int | None, timeout: int | None, deadline: int | None, *, rollback: bool | None
) -> TaskFields:
    """The fields that say how a task is tried, of those that options give."""
    fields: TaskFields = {}
    if max_attempts is not None:
        fields["retry"] = {"max_attempts": max_attempts}
    if timeout is not None:
        fields["timeout_seconds"] = timeout
    if deadline is not None:
        fields["deadline_seconds"] = deadline
    if rollback is not None:
        fields["rollback"] = rollback
    return fields


def due_fields(clock: Clock, at: str | None, delay: str | None) -> TaskFields:
    """The field that says when a task is due, if an option does."""
    if at is not None and delay is not None:
        raise typer.BadParameter("give either --at or --in, not both")
    if at is not None:
        return {"at": moment(at, clock, "--at")}
    return {} if delay is None else {"delay_seconds": seconds(delay)}


def task_filter(
    clock: Clock,
    *,
    state: str | None,
    task_type: str | None,
    name: str | None,
    tags: Sequence[str],
    due_from: str | None,
    due_to: str | None,
) -> TaskFilter:
    """The filter that the options give."""
    filters: TaskFilter = {}
    if state is not None:
        filters["state"] = state
    if task_type is not None:
        filters["type"] = task_type
    if name is not None:
        filters["name"] = name
    if tags:
        filters["tags"] = tags_of(tags)
    if due_from is not None:
        filters["due_from"] = moment(due_from, clock, "--due-from")
    if due_to is not None:
        filters["due_to"] = moment(due_to, clock, "--due-to")
    return filters


def moment(text: str, clock: Clock, option: str) -> datetime:
    """The moment that an option names, in the reader's zone unless it says another."""
    try:
        return clock.local(moment_of(text))
    except (ValueError, OverflowError) as error:
        raise typer.BadParameter(str(error), param_hint=option) from error


def seconds(text: str) -> float:
    """The seconds of `--in`."""
    try:
        return seconds_of_span(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint="--in") from error


def tags_of(words: Sequence[str]) -> dict[str, str]:
    """The tags that `--tag key=value` gives, each time it is used."""
    tags = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not key or not equals:
            raise typer.BadParameter(f"{word!r} is not key=value", param_hint="--tag")
        tags[key] = value
    return tags


def json_of(source: str, option: str = "--payload") -> object:
    """The JSON that an option gives: the word itself, `@file`, or `-` for standard input."""
    try:
        return json.loads(text_of(source), parse_constant=reject_constant)
    except (OSError, RecursionError) as error:
        raise typer.BadParameter(str(error), param_hint=option) from error
    except ValueError as error:
        raise typer.BadParameter(f"not JSON: {error}", param_hint=option) from error


def text_of(source: str) -> str:
    """The text that such an option names."""
    if source == "-":
        return sys.stdin.read()
    if source.startswith("@"):
        return Path(source[1:]).read_text(encoding="utf-8")
    return source


def reject_constant(name: str) -> NoReturn:
    """Refuse what Python reads as a number and JSON has no word for."""
    raise ValueError(f"{name} is no JSON number")
