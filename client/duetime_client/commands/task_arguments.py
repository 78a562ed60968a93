"""Converts command-line options to the fields of a request."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, cast

import typer

from duetime_client.commands.target_arguments import reject_constant, target_of
from duetime_client.commands.times import moment_of, seconds_of_span
from duetime_client.task_request_fields import TaskFields

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from duetime_client.commands.clock import Clock
    from duetime_client.commands.task_options import DueOptions, FilterOptions, TaskOptions, UniqueOptions
    from duetime_client.literals import TaskState
    from duetime_client.task_request_fields import (
        Debounce,
        LockSpec,
        NotifyOn,
        RateSpec,
        RetryPolicy,
        TaskFilter,
        UniqueKey,
    )

_GRAPH = ("nodes", "on_failure", "timeout_seconds", "outputs")
"""Fields of a topology that belong to its graph; the others are those of any task."""
_CONVERTED = frozenset({"payload", "lock", "rate", "unique", "debounce"})
"""Fields whose options need conversion: JSON, and the keys of a lock, a rate and a unique task."""


def task_fields(options: TaskOptions) -> TaskFields:
    """The task fields set by options; others are absent."""
    fields: TaskFields = {**graph_fields(options), **plain_fields(options)}
    if options.payload is not None:
        fields["payload"] = json_of(options.payload)
    if options.tag:
        fields["tags"] = tags_of(options.tag)
    if target := target_of(options):
        fields["target"] = target
    limits: TaskFields = {**lock_fields(options), **rate_fields(options), **attempt_fields(options)}
    return {**fields, **limits, **notify_fields(options)}


def lock_fields(options: TaskOptions) -> TaskFields:
    """The lock set by options."""
    limits = {"--lock-max-holders": options.lock_max_holders, "--lock-wait": options.lock_wait}
    if options.lock is None:
        if given := [name for name, value in limits.items() if value is not None]:
            raise typer.BadParameter("needs --lock", param_hint=", ".join(given))
        return {}
    lock: LockSpec = {"key": options.lock}
    if options.lock_max_holders is not None:
        lock["max_holders"] = options.lock_max_holders
    if options.lock_wait is not None:
        lock["wait_seconds"] = options.lock_wait
    return {"lock": lock}


def rate_fields(options: TaskOptions) -> TaskFields:
    """The rate set by options."""
    told = {"--rate-limit": options.rate_limit, "--rate-per": options.rate_per, "--rate-burst": options.rate_burst}
    if options.rate_key is None:
        if given := [name for name, value in told.items() if value is not None]:
            raise typer.BadParameter("needs --rate-key", param_hint=", ".join(given))
        return {}
    if options.rate_limit is None:
        raise typer.BadParameter("needs --rate-limit", param_hint="--rate-key")
    rate: RateSpec = {"key": options.rate_key, "limit": options.rate_limit}
    if options.rate_per is not None:
        rate["per_seconds"] = options.rate_per
    if options.rate_burst is not None:
        rate["burst"] = options.rate_burst
    return {"rate": rate}


def unique_fields(options: UniqueOptions) -> TaskFields:
    """The unique key or debounce set by options."""
    if options.debounce is None and options.debounce_max is not None:
        raise typer.BadParameter("needs --debounce", param_hint="--debounce-max")
    told = {
        "--unique-until": options.unique_until,
        "--on-conflict": options.on_conflict,
        "--debounce": options.debounce,
    }
    given = [name for name, value in told.items() if value is not None]
    if options.unique is None:
        if given:
            raise typer.BadParameter("needs --unique", param_hint=", ".join(given))
        return {}
    if options.debounce is None:
        unique: UniqueKey = {"key": options.unique}
        if options.unique_until is not None:
            unique["until"] = options.unique_until.value
        if options.on_conflict is not None:
            unique["on_conflict"] = options.on_conflict.value
        return {"unique": unique}
    if len(given) > 1:
        raise typer.BadParameter("cannot be given with --debounce", param_hint=", ".join(given[:-1]))
    debounce: Debounce = {"key": options.unique, "seconds": options.debounce}
    if options.debounce_max is not None:
        debounce["max_seconds"] = options.debounce_max
    return {"debounce": debounce}


def plain_fields(options: TaskOptions) -> TaskFields:
    """The fields that options set directly; empty text becomes null."""
    names = TaskFields.__annotations__.keys() - _CONVERTED
    given = {name: getattr(options, name, None) for name in sorted(names)}
    plain = {name: None if value == "" else value for name, value in given.items() if value is not None}
    return cast("TaskFields", plain)


def graph_fields(options: TaskOptions) -> TaskFields:
    """The graph of `--topology` as the payload, and the task fields in its file.

    Raises:
        typer.Exit: the file is not a valid topology; the reasons are printed.
    """
    if options.topology is None:
        return {}
    if options.payload is not None:
        raise typer.BadParameter("is the graph of --topology", param_hint="--payload")
    from duetime_client.commands.messages import show_invalid_file  # noqa: PLC0415 - few commands read a graph
    from duetime_client.topology_files import TopologyInvalid, read_topology  # noqa: PLC0415 - as above

    try:
        body = read_topology(options.topology)
    except TopologyInvalid as error:
        show_invalid_file(options.topology, error.errors)
        raise typer.Exit(1) from error
    graph = {name: value for name, value in body.items() if name in _GRAPH}
    # The command sets the type.
    own = {name: value for name, value in body.items() if name not in _GRAPH and name != "type"}
    return cast("TaskFields", {**own, "payload": graph})


def notify_fields(options: TaskOptions) -> TaskFields:
    """The notices sent to an address; failures are included unless an option excludes them."""
    address, late, failed = options.notify_to, options.notify_late, options.notify_failed
    if address is None:
        if late is not None or failed is not None:
            raise typer.BadParameter("needs --notify-to", param_hint="--notify-late, --notify-failed")
        return {}
    if not address:
        return {"notify_on": None}
    told: NotifyOn = {"to": address, "failed": failed is not False}
    return {"notify_on": told if late is None else {**told, "late_seconds": late}}


def attempt_fields(options: TaskOptions) -> TaskFields:
    """The fields about attempts: their number, timeouts, and what follows a failure."""
    fields: TaskFields = {}
    retry: RetryPolicy = {}
    if options.max_attempts is not None:
        retry["max_attempts"] = options.max_attempts
    if options.retry_for is not None:
        retry["max_duration_seconds"] = options.retry_for
    if retry:
        fields["retry"] = retry
    if options.timeout is not None:
        fields["timeout_seconds"] = options.timeout
    if options.notify_within is not None:
        fields["notify_within_seconds"] = options.notify_within
    return fields


def due_fields(options: DueOptions, clock: Clock) -> TaskFields:
    """The due-time field, if an option sets one."""
    if options.due_at is not None and options.delay is not None:
        raise typer.BadParameter("give either --due-at or --in, not both")
    if options.due_at is not None:
        return {"due_at": moment(options.due_at, clock, "--due-at")}
    return {} if options.delay is None else {"delay_seconds": seconds(options.delay)}


def task_filter(options: FilterOptions, clock: Clock, state: str | None = None) -> TaskFilter:
    """The filter set by options."""
    filters: TaskFilter = {}
    if state is not None:
        filters["state"] = cast("TaskState", state)
    if options.task_type is not None:
        filters["type"] = options.task_type
    if options.of_name is not None:
        filters["name"] = options.of_name
    if options.of_tag:
        filters["tags"] = tags_of(options.of_tag)
    if options.due_after is not None:
        filters["due_after"] = moment(options.due_after, clock, "--due-after")
    if options.due_before is not None:
        filters["due_before"] = moment(options.due_before, clock, "--due-before")
    return filters


def moment(text: str, clock: Clock, option: str) -> datetime:
    """Parse a time, in the reader's zone unless it names another."""
    try:
        return clock.local(moment_of(text))
    except (ValueError, OverflowError) as error:
        raise typer.BadParameter(str(error), param_hint=option) from error


def seconds(text: str, option: str = "--in") -> float:
    """Parse a duration option to seconds."""
    try:
        return seconds_of_span(text)
    except ValueError as error:
        raise typer.BadParameter(str(error), param_hint=option) from error


def tags_of(words: Sequence[str]) -> dict[str, str]:
    """Parse `--tag key=value` options."""
    tags = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not key or not equals:
            raise typer.BadParameter(f"{word!r} is not key=value", param_hint="--tag")
        tags[key] = value
    return tags


def json_of(source: str, option: str = "--payload") -> object:
    """Parse JSON given as a value, as `@file`, or as `-` for standard input."""
    try:
        return json.loads(text_of(source), parse_constant=reject_constant)
    except (OSError, RecursionError) as error:
        raise typer.BadParameter(str(error), param_hint=option) from error
    except ValueError as error:
        raise typer.BadParameter(f"not JSON: {error}", param_hint=option) from error


def text_of(source: str) -> str:
    """Read text given as a value, as `@file`, or as `-` for standard input."""
    if source == "-":
        return sys.stdin.read()
    if source.startswith("@"):
        return Path(source[1:]).read_text(encoding="utf-8")
    return source
