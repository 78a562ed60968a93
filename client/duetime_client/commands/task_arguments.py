"""Converts command-line options to the fields of a request."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import typer

from duetime_client.commands.target_arguments import reject_constant, target_of
from duetime_client.commands.task_options import ListFilterOptions
from duetime_client.commands.times import moment_of, seconds_of_span
from duetime_client.task_request_fields import TaskFields
from duetime_common.payload_codecs import OCTET_STREAM, Binary

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from datetime import datetime

    from duetime_client.commands.clock import Clock
    from duetime_client.commands.task_options import DueOptions, FilterOptions, TaskOptions, UniqueOptions
    from duetime_client.task_request_fields import TaskFilter
    from duetime_common.option_fields import NotifyOn

_GRAPH = ("nodes", "on_failure", "timeout_seconds", "outputs")
"""Fields of a topology that belong to its graph; a topology's other fields exist for every task."""
_CONVERTED = frozenset({"payload", "lock", "locks", "rate", "unique", "debounce", "order"})
"""Fields whose options need conversion: JSON, and the keys of locks, rates, unique tasks and ordered tasks."""


def task_fields(options: TaskOptions) -> TaskFields:
    """The task fields set by options; other fields are absent."""
    fields: TaskFields = {**graph_fields(options), **plain_fields(options)}
    fields |= payload_fields(options)
    if options.tag:
        fields["tags"] = tags_of(options.tag)
    if target := target_of(options):
        fields["target"] = target
    limits: TaskFields = {**lock_fields(options), **rate_fields(options), **attempt_fields(options)}
    return {**fields, **limits, **notify_fields(options)}


def payload_fields(options: TaskOptions) -> TaskFields:
    """The payload set by options: JSON, or the bytes of a file."""
    _reject_without("--payload-file", options.payload_file, content_type=options.content_type)
    if options.payload_file is None:
        return {} if options.payload is None else {"payload": json_of(options.payload)}
    if options.payload is not None or options.topology is not None:
        raise typer.BadParameter("cannot be given with --payload or --topology", param_hint="--payload-file")
    try:
        return {"payload": Binary(options.payload_file.read_bytes(), options.content_type or OCTET_STREAM)}
    except OSError as error:
        raise typer.BadParameter(str(error), param_hint="--payload-file") from error


def lock_fields(options: TaskOptions) -> TaskFields:
    """The locks set by options."""
    named = options.lock or []
    _reject_without("--lock", named or None, lock_max_holders=options.lock_max_holders, lock_wait=options.lock_wait)
    if len(named) > 1 and options.lock_max_holders is not None:
        raise typer.BadParameter("is for a single --lock", param_hint="--lock-max-holders")
    locks = [
        {**_lock(text), **given(max_holders=options.lock_max_holders, wait_seconds=options.lock_wait)} for text in named
    ]
    return cast("TaskFields", given(lock=locks[0]) if len(locks) == 1 else given(locks=locks or None))


def _lock(text: str) -> dict[str, str]:
    """A lock from `KEY` or `KEY=shared`: keys may contain colons, but no equals sign."""
    key, mark, mode = text.partition("=")
    return {"key": key, "mode": mode} if mark else {"key": key}


def rate_fields(options: TaskOptions) -> TaskFields:
    """The rate set by options."""
    others = {"rate_limit": options.rate_limit, "rate_per": options.rate_per, "rate_burst": options.rate_burst}
    _reject_without("--rate-key", options.rate_key, **others)
    if options.rate_key is not None and options.rate_limit is None:
        raise typer.BadParameter("needs --rate-limit", param_hint="--rate-key")
    rate = given(key=options.rate_key, limit=options.rate_limit, per_seconds=options.rate_per, burst=options.rate_burst)
    return cast("TaskFields", given(rate=rate or None))


def unique_fields(options: UniqueOptions) -> TaskFields:
    """The unique key or debounce set by options."""
    _reject_without("--debounce", options.debounce, debounce_max=options.debounce_max)
    others = {"unique_until": options.unique_until, "on_conflict": options.on_conflict}
    _reject_without("--unique", options.unique, **others, debounce=options.debounce)
    if options.debounce is None:
        until, on_conflict = (each and each.value for each in others.values())
        return cast("TaskFields", given(unique=given(key=options.unique, until=until, on_conflict=on_conflict) or None))
    if conflicting := _named(others):
        raise typer.BadParameter("cannot be given with --debounce", param_hint=conflicting)
    debounce = given(key=options.unique, seconds=options.debounce, max_seconds=options.debounce_max)
    return cast("TaskFields", {"debounce": debounce})


def after_fields(options: UniqueOptions) -> TaskFields:
    """The tasks that must end before this task starts, as set by options."""
    _reject_without("--after", options.after, rule=options.trigger_rule)
    after = [_dependency(each) for each in options.after or ()]
    rule = options.trigger_rule and options.trigger_rule.value
    return cast("TaskFields", given(after=after or None, trigger_rule=rule))


def _dependency(text: str) -> str | dict[str, str]:
    """A task's id, or an occurrence of a schedule."""
    schedule, mark, occurrence = text.partition("@")
    return {"schedule": schedule, "occurrence": occurrence} if mark else text


def order_fields(options: UniqueOptions) -> TaskFields:
    """The ordered key set by options."""
    on_failure = "stop" if options.order_stop else None
    _reject_without("--order", options.order, order_stop=on_failure)
    return cast("TaskFields", given(order=given(key=options.order, on_failure=on_failure) or None))


def given(**fields: object) -> dict[str, Any]:
    """The fields with a value."""
    return {name: value for name, value in fields.items() if value is not None}


def _reject_without(needed: str, value: object, **options: object) -> None:
    """Reject options that need another option, if the other option is absent."""
    if value is None and (names := _named(options)):
        raise typer.BadParameter(f"needs {needed}", param_hint=names)


def _named(options: Mapping[str, object]) -> str:
    """The names of the given options, as on the command line."""
    return ", ".join(f"--{name.replace('_', '-')}" for name in given(**options))


def plain_fields(options: TaskOptions) -> TaskFields:
    """The fields that options set directly; empty text becomes null."""
    names = TaskFields.__annotations__.keys() - _CONVERTED
    texts = given(**{name: getattr(options, name, None) for name in sorted(names)})
    return cast("TaskFields", {name: None if value == "" else value for name, value in texts.items()})


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
    address, failed = options.notify_to, options.notify_failed
    times = given(late_seconds=options.notify_late, running_seconds=options.notify_running)
    if address is None:
        if times or failed is not None:
            hint = "--notify-late, --notify-running, --notify-failed"
            raise typer.BadParameter("needs --notify-to", param_hint=hint)
        return {}
    if not address:
        return {"notify_on": None}
    notice: NotifyOn = {"to": address, "failed": failed is not False}
    return {"notify_on": cast("NotifyOn", {**notice, **times})}


def attempt_fields(options: TaskOptions) -> TaskFields:
    """The fields about attempts: their number, timeouts, and what happens after a failure."""
    retry = given(max_attempts=options.max_attempts, max_duration_seconds=options.retry_for)
    fields = given(retry=retry or None, timeout_seconds=options.timeout, notify_within_seconds=options.notify_within)
    return cast("TaskFields", fields)


def due_fields(options: DueOptions, clock: Clock) -> TaskFields:
    """The due-time field, if an option sets one."""
    if options.due_at is not None and options.delay is not None:
        raise typer.BadParameter("give either --due-at or --in, not both")
    if options.due_at is not None:
        return {"due_at": moment(options.due_at, clock, "--due-at")}
    return {} if options.delay is None else {"delay_seconds": seconds(options.delay)}


def task_filter(options: FilterOptions, clock: Clock, state: str | None = None) -> TaskFilter:
    """The filter set by options that select many tasks."""
    return list_filter(
        ListFilterOptions(
            state=state,
            task_type=options.task_type,
            name=options.of_name,
            name_contains=options.name_contains,
            error_contains=options.error_contains,
            tag=options.of_tag,
            due_after=options.due_after,
            due_before=options.due_before,
        ),
        clock,
    )


_RANGES = tuple(f"{what}_{bound}" for what in ("due", "created", "finished") for bound in ("after", "before"))
"""Options with times."""


def list_filter(options: ListFilterOptions, clock: Clock) -> TaskFilter:
    """The filter set by options of a list."""
    times = {
        name: moment(text, clock, f"--{name.replace('_', '-')}")
        for name in _RANGES
        if (text := getattr(options, name)) is not None
    }
    fields = given(
        state=options.state,
        type=options.task_type,
        name=options.name,
        name_contains=options.name_contains,
        error_contains=options.error_contains,
        tags=tags_of(options.tag) if options.tag else None,
        **times,
        schedule=options.schedule,
        parent=options.parent,
        parent_task_id=options.parent_task_id,
        group=options.group,
        include_nodes=options.include_nodes or None,
        order=options.order and options.order.value,
        order_by=options.order_by and options.order_by.value,
    )
    return cast("TaskFilter", fields)


def moment(text: str, clock: Clock, option: str) -> datetime:
    """Parse a time, in the reader's zone unless the time names another zone."""
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
