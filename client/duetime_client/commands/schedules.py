"""`duetime schedules`: list, show, create, update, delete, occurrences, runs, preview."""

from typing import TYPE_CHECKING, Annotated, cast

import typer

from duetime_client.commands import backfills, schedule_control, schedule_files
from duetime_client.commands.command_help import examples
from duetime_client.commands.connection import Call
from duetime_client.commands.list_reader import ListReader, show_list
from duetime_client.commands.option_bundles import CommandGroup
from duetime_client.commands.output_streams import say, show_json
from duetime_client.commands.schedule_arguments import rule_fields, timing_fields
from duetime_client.commands.schedule_options import (
    After,
    Count,
    From,
    RuleOptions,
    ScheduleName,
    ScheduleState,
    TimingOptions,
)
from duetime_client.commands.schedule_views import (
    show_details,
    show_forecast,
    show_occurrences,
    show_preview,
    show_runs,
    show_schedules,
)
from duetime_client.commands.task_arguments import moment, tags_of, task_fields
from duetime_client.commands.task_options import (
    AllowUnknownType,
    IdempotencyKey,
    IfMatch,
    LimitOptions,
    Reason,
    TaskOptions,
    TaskType,
    WithEstimate,
    Yes,
)
from duetime_common.limits import MAX_PAGE

if TYPE_CHECKING:
    from duetime_client import literals
    from duetime_client.schedule_models import ScheduleFields

app = CommandGroup(help="Create and control schedules: recurring tasks.", no_args_is_help=True)


@app.command("list")
@examples("duetime schedules list --state paused", "duetime schedules list --type report --tag team=dba")
def list_schedules(
    call: Call,
    *,
    state: Annotated[
        list[ScheduleState] | None, typer.Option("--state", help="Only schedules in this state; may be repeated.")
    ] = None,
    task_type: Annotated[
        str | None, typer.Option("--type", metavar="TYPE", help="Only schedules with tasks of this type.")
    ] = None,
    tag: Annotated[
        list[str] | None,
        typer.Option("--tag", metavar="KEY=VALUE", help="Only schedules with this tag; may be repeated."),
    ] = None,
    name_prefix: Annotated[
        str | None, typer.Option(metavar="TEXT", help="Only names that begin with this text.")
    ] = None,
    limits: LimitOptions,
) -> None:
    """List schedules by name, with their next run in local time; with --json, as one array."""
    chosen: list[literals.ScheduleState] = [each.value for each in state or ()]
    tags = tags_of(tag) if tag else None
    with call.client() as client:
        listed = client.schedules.list(
            state=chosen, type=task_type, tags=tags, name_prefix=name_prefix, page_size=limits.page_size
        )
        show_list(call, client, listed, limits, show_schedules, "schedules")


@app.command("show")
@examples("duetime schedules show nightly")
def show_schedule(call: Call, name: ScheduleName) -> None:
    """Show one schedule, its next occurrences, and recent events: manual runs, pauses, and skips with reasons."""
    with call.client() as client:
        schedule = client.schedules.get(name)
    call.show(schedule, show_details)


@app.command()
@examples(
    "duetime schedules create nightly report --cron '30 1 * * *' --timezone Europe/London",
    "duetime schedules create weekly graph --cron '0 6 * * 1' --topology graph.json",
)
def create(  # noqa: PLR0913 - arguments, and bundles of options
    call: Call,
    schedule_name: ScheduleName,
    task_type: TaskType,
    *,
    timing: TimingOptions,
    rules: RuleOptions,
    task: TaskOptions,
    allow_unknown_type: AllowUnknownType = False,
    idempotency_key: IdempotencyKey = None,
    estimate: WithEstimate = False,
) -> None:
    """Create a schedule, with one kind of timing or with several --timing options."""
    clock = call.clock
    fields: ScheduleFields = {**timing_fields(timing, clock), **rule_fields(rules)}
    fields["task"] = {"type": task_type, **task_fields(task)}
    if allow_unknown_type:
        fields["task"]["allow_unknown_type"] = True
    with call.client() as client:
        schedule = client.schedules.create(schedule_name, idempotency_key=idempotency_key, estimate=estimate, **fields)
    call.show(schedule, show_details)


@app.command()
@examples("duetime schedules update nightly --cron '0 2 * * *'")
def update(  # noqa: PLR0913 - arguments, and bundles of options
    call: Call,
    schedule_name: ScheduleName,
    *,
    timing: TimingOptions,
    rules: RuleOptions,
    task: TaskOptions,
    task_type: Annotated[str | None, typer.Option("--type", metavar="TYPE", help="Type of its tasks.")] = None,
    no_calendars: Annotated[bool, typer.Option("--no-calendars", help="Remove all calendars.")] = False,
    if_match: IfMatch = None,
    reason: Reason = "",
) -> None:
    """Update a schedule; fields without an option do not change. The schedule's queued tasks are replaced."""
    clock = call.clock
    changes: ScheduleFields = {**timing_fields(timing, clock), **rule_fields(rules)}
    if no_calendars:
        changes["calendars"] = []
    template = task_fields(task)
    if not changes and not template and task_type is None:
        raise typer.BadParameter("nothing to update: give at least one option such as --cron or --payload")
    if template or task_type is not None:
        named = {} if task_type is None else {"type": task_type}
        changes["task"] = {**template, **named}  # type: ignore[typeddict-item] # the type is optional in an update
    with call.client() as client:
        schedule = client.schedules.update(schedule_name, if_match=if_match, reason=reason, **changes)
    call.show(schedule, show_details)


@app.command()
@examples("duetime schedules delete nightly")
def delete(call: Call, name: ScheduleName, *, if_match: IfMatch = None, yes: Yes = False) -> None:
    """Delete a schedule, after confirmation; its queued tasks will not run."""
    if not yes:
        typer.confirm(f"Delete the schedule {name}? Its queued tasks will not run.", abort=True, err=True)
    with call.client() as client:
        schedule = client.schedules.delete(name, if_match=if_match)
    call.show(schedule, lambda schedule, _: say(f"deleted the schedule {schedule.name}; its queued tasks will not run"))


@app.command()
@examples("duetime schedules occurrences nightly --count 5")
def occurrences(
    call: Call,
    name: ScheduleName,
    *,
    after: After = None,
    before: Annotated[str | None, typer.Option("--before", metavar="TIME", help="End of the list (exclusive).")] = None,
    count: Count = 20,
) -> None:
    """List future occurrences with their tasks, or past occurrences with --after; with --json, as an array."""
    clock = call.clock
    first = None if after is None else moment(after, clock, "--after")
    last = None if before is None else moment(before, clock, "--before")
    with call.client() as client:
        found = client.schedules.list_occurrences(name, scheduled_after=first, scheduled_before=last, limit=count)
    call.show_all(found, show_occurrences)


@app.command()
@examples("duetime schedules runs nightly --limit 10", "duetime schedules runs nightly --status failed")
def runs(
    call: Call,
    name: ScheduleName,
    *,
    after: Annotated[
        str | None, typer.Option("--after", metavar="TIME", help="Runs that were scheduled for this time or later.")
    ] = None,
    before: Annotated[
        str | None, typer.Option("--before", metavar="TIME", help="Runs that were scheduled before this time.")
    ] = None,
    status: Annotated[
        list[str] | None,
        typer.Option("--status", metavar="STATUS", help="Only runs with this status, such as failed; repeatable."),
    ] = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="Maximum number of runs to show.")] = 20,
) -> None:
    """List past and planned runs, newest first: what ran, failed or was skipped, and why."""
    clock = call.clock
    first = None if after is None else moment(after, clock, "--after")
    last = None if before is None else moment(before, clock, "--before")
    with call.client() as client:
        chosen = cast("list[literals.RunStatus]", status or [])
        listed = client.schedules.list_runs(
            name, status=chosen, scheduled_after=first, scheduled_before=last, page_size=min(limit, MAX_PAGE)
        )
        reading = ListReader(client, clock, "runs", as_json=call.as_json)
        found = reading.first(listed, limit)
    if call.as_json:
        show_json([each.document for each in found])
    else:
        reading.show(found, lambda: show_runs(found, clock))


@app.command()
@examples("duetime schedules preview --cron '30 1 * * *' --timezone Europe/London --from 2027-03-27")
def preview(
    call: Call,
    *,
    timing: TimingOptions,
    begin: From = None,
    count: Count = 10,
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="Name of the schedule, for --spread.")
    ] = None,
) -> None:
    """Show the occurrences of a timing, with the decisions about DST and calendars; nothing is created."""
    clock = call.clock
    fields = timing_fields(timing, clock)
    first = None if begin is None else moment(begin, clock, "--from")
    with call.client() as client:
        found = client.schedules.preview(start=first, count=count, name=name, **fields)
    call.show_all(found, show_preview)


@app.command()
@examples("duetime schedules forecast", "duetime schedules forecast --hours 168")
def forecast(
    call: Call,
    *,
    hours: Annotated[int | None, typer.Option("--hours", metavar="N", help="1 to 168; default: 24.")] = None,
) -> None:
    """Show how many runs are planned in the next hours, and in which minutes several schedules begin."""
    with call.client() as client:
        found = client.schedules.get_forecast(hours=hours)
    call.show(found, show_forecast)


schedule_control.add_to(app)
app.add_typer(backfills.app, name="backfills")
schedule_files.add_to(app)
