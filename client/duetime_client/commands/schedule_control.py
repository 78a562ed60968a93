"""`duetime schedules`: pause, resume, update-occurrence, run."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

import typer

from duetime_client.commands.command_help import examples
from duetime_client.commands.connection import Call
from duetime_client.commands.event_views import show_schedule_events
from duetime_client.commands.schedule_options import ScheduleName
from duetime_client.commands.schedule_views import show_details
from duetime_client.commands.task_arguments import json_of, moment, tags_of
from duetime_client.commands.task_options import IdempotencyKey, IfMatch
from duetime_client.commands.task_views import show_task
from duetime_client.filter_actions import FilterActionResult

_OCCURRENCE_ACTIONS: Mapping[str, Literal["skip", "move", "run_now", "restore"]] = {
    "now": "run_now",
    "skip": "skip",
    "restore": "restore",
}
OneSchedule = Annotated[str | None, typer.Argument(metavar="NAME", help="Name of the schedule.")]
OfTag = Annotated[
    list[str] | None,
    typer.Option("--of-tag", metavar="KEY=VALUE", help="All schedules with this tag; may be repeated."),
]
Why = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Reason; shown with the events of the schedule.")]


@examples("duetime schedules pause nightly --reason 'the source is down'", "duetime schedules pause --of-tag team=dba")
def pause(
    call: Call,
    name: OneSchedule = None,
    *,
    of_tag: OfTag = None,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Reason; shown with the schedule.")] = "",
    if_match: IfMatch = None,
) -> None:
    """Pause a schedule, or all schedules with a tag; queued tasks will not run."""
    with call.client() as client:
        if name is None or of_tag:
            tags = _tags(name, of_tag, if_match)
            _run_by_tag(client.schedules.pause_by_tag(tags, reason=reason), "paused", as_json=call.as_json)
            return
        schedule = client.schedules.pause(name, reason, if_match=if_match)
    call.show(schedule, show_details)


@examples("duetime schedules resume nightly", "duetime schedules resume --of-tag team=dba")
def resume(
    call: Call, name: OneSchedule = None, *, of_tag: OfTag = None, reason: Why = "", if_match: IfMatch = None
) -> None:
    """Resume a schedule from now on, or all schedules with a tag; occurrences due during the pause do not run."""
    with call.client() as client:
        if name is None or of_tag:
            tags = _tags(name, of_tag, if_match)
            _run_by_tag(client.schedules.resume_by_tag(tags, reason=reason), "resumed", as_json=call.as_json)
            return
        schedule = client.schedules.resume(name, reason=reason, if_match=if_match)
    call.show(schedule, show_details)


@examples(
    "duetime schedules update-occurrence nightly 2027-01-01T01:30 2027-01-01T09:00",
    "duetime schedules update-occurrence nightly 2027-01-02T01:30 skip",
)
def update_occurrence(
    call: Call,
    name: ScheduleName,
    scheduled_at: Annotated[str, typer.Argument(metavar="TIME", help="When the occurrence is scheduled.")],
    to: Annotated[str, typer.Argument(metavar="TO", help="When the occurrence runs instead; or now, skip or restore.")],
    *,
    reason: Why = "",
    if_match: IfMatch = None,
) -> None:
    """Move a future occurrence, run it now, skip it, or restore it to its original time."""
    clock = call.clock
    action = _OCCURRENCE_ACTIONS.get(to, "move")
    due_at = moment(to, clock, "TO") if action == "move" else None
    at = moment(scheduled_at, clock, "TIME")
    with call.client() as client:
        schedule = client.schedules.update_occurrence(name, at, action, due_at=due_at, reason=reason, if_match=if_match)
    call.show(schedule, show_details)


@examples(
    "duetime schedules run nightly",
    "duetime schedules run nightly --payload '{\"since\": \"2026-11-20\"}' --at 2026-12-01T22:00 --reason 'lost rows'",
)
def run(
    call: Call,
    name: ScheduleName,
    *,
    payload: Annotated[
        str | None,
        typer.Option(metavar="JSON", help="Payload, instead of the schedule's: JSON, @file, or - for standard input."),
    ] = None,
    at: Annotated[str | None, typer.Option(metavar="TIME", help="When the task is due; default: now.")] = None,
    reason: Why = "",
    idempotency_key: IdempotencyKey = None,
    if_match: IfMatch = None,
) -> None:
    """Run a schedule's task once, now or at a time, and show the task."""
    changed: dict[str, Any] = {} if payload is None else {"payload": json_of(payload)}
    due_at = None if at is None else moment(at, call.clock, "--at")
    with call.client() as client:
        task = client.schedules.run(
            name, due_at=due_at, reason=reason, idempotency_key=idempotency_key, if_match=if_match, **changed
        )
    call.show(task, show_task)


@examples("duetime schedules events nightly")
def events(call: Call, name: ScheduleName) -> None:
    """Show the history of a schedule: who did what, when and why."""
    with call.client() as client:
        history = client.schedules.list_events(name)
    call.show(history, show_schedule_events)


def add_to(app: typer.Typer) -> None:
    """Register these commands in the group of schedules."""
    for command in (pause, resume, update_occurrence, run, events):
        app.command()(command)


def _tags(name: str | None, of_tag: list[str] | None, if_match: str | None) -> dict[str, str]:
    """The tags that select schedules; a name or an ETag together with tags is rejected."""
    if not of_tag or name is not None:
        raise typer.BadParameter("give either a NAME or --of-tag")
    if if_match is not None:
        raise typer.BadParameter("--if-match needs a NAME")
    return tags_of(of_tag)


def _run_by_tag(pages: Iterator[FilterActionResult], done: str, *, as_json: bool) -> None:
    """Apply an action to all schedules with the tags; exit code 1 if a schedule could not be changed."""
    from duetime_client.commands.filter_actions import run_with_progress, show_totals  # noqa: PLC0415 - as there

    totals = run_with_progress(pages, None)
    show_totals(totals, done, as_json=as_json)
    if totals.refused or totals.state == "cancelled":
        raise typer.Exit(1)
