"""`duetime schedules`: list, show, create, change, delete, occurrences, preview."""

from itertools import islice
from typing import Annotated

import typer

from duetime_client.authentication import Authentication
from duetime_client.client import Client
from duetime_client.commands import apply, schedule_control
from duetime_client.commands.clock import Clock
from duetime_client.commands.connection import AsJson, Auth, Owner, Url, connected
from duetime_client.commands.console import say, show_json
from duetime_client.commands.schedule_arguments import rule_fields, timing_fields
from duetime_client.commands.schedule_options import (
    CalendarNames,
    CatchUp,
    Count,
    Cron,
    Date,
    DialectOption,
    DstFold,
    DstGap,
    End,
    From,
    Interval,
    Jitter,
    OnExcludedOption,
    OverlapOption,
    PauseOnFailure,
    Permanent,
    Rate,
    Runs,
    ScheduleName,
    ScheduleState,
    Start,
    Timezone,
)
from duetime_client.commands.schedule_views import show, show_occurrences, show_preview, show_schedules
from duetime_client.commands.task_arguments import moment, task_fields
from duetime_client.commands.task_options import (
    AllowUnknownType,
    Deadline,
    HttpPhases,
    HttpUrl,
    IfMatch,
    LockKey,
    LockLimit,
    MaxAttempts,
    Payload,
    PriorityOption,
    Rollback,
    Tag,
    Timeout,
)
from duetime_client.schedule_models import ScheduleFields
from duetime_client.task_fields import TaskFields

app = typer.Typer(help="Keep schedules: work that recurs.", no_args_is_help=True)
MAX_PAGE = 100
"""The API puts at most this many schedules on a page."""


@app.command("list")
def list_schedules(  # noqa: PLR0913 - a command's options are its parameters
    context: typer.Context,
    *,
    url: Url,
    state: Annotated[ScheduleState | None, typer.Option("--state", help="Only schedules in this state.")] = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="How many at most.")] = 50,
    everything: Annotated[bool, typer.Option("--all", help="Every schedule, however many there are.")] = False,
    as_json: AsJson = False,
    auth: Auth = Authentication.NONE,
    owner: Owner = None,
) -> None:
    """List schedules by name, with their next run in local time; with --json, one array of them."""
    with connected(context, url, auth, owner) as client:
        # One more than is shown, to know whether there are more.
        wanted = None if everything else limit + 1
        found = list(islice(client.list_schedules(state=state, page_size=min(wanted or MAX_PAGE, MAX_PAGE)), wanted))
    shown = found if everything else found[:limit]
    if as_json:
        show_json([schedule.document for schedule in shown])
    else:
        show_schedules(shown, context.ensure_object(Clock), more=len(found) > len(shown))


@app.command("show")
def show_schedule(
    context: typer.Context,
    name: ScheduleName,
    *,
    url: Url,
    as_json: AsJson = False,
    auth: Auth = Authentication.NONE,
    owner: Owner = None,
) -> None:
    """Show one schedule, what comes next, and what did not run lately and why."""
    with connected(context, url, auth, owner) as client:
        schedule = client.get_schedule(name)
    show(schedule, context.ensure_object(Clock), as_json=as_json)


@app.command()
def create(  # noqa: PLR0913 - a command's options are its parameters
    context: typer.Context,
    name: ScheduleName,
    task_type: Annotated[str, typer.Argument(metavar="TYPE", help="Which handler runs its tasks.")],
    *,
    url: Url,
    cron: Cron = None,
    rate: Rate = None,
    interval: Interval = None,
    date: Date = None,
    permanent: Permanent = None,
    dialect: DialectOption = None,
    timezone: Timezone = None,
    dst_gap: DstGap = None,
    dst_fold: DstFold = None,
    calendar: CalendarNames = None,
    on_excluded: OnExcludedOption = None,
    jitter: Jitter = None,
    start: Start = None,
    end: End = None,
    runs: Runs = None,
    overlap: OverlapOption = None,
    catch_up: CatchUp = None,
    pause_on_failure: PauseOnFailure = None,
    payload: Payload = None,
    priority: PriorityOption = None,
    tag: Tag = None,
    http_url: HttpUrl = None,
    http_phase: HttpPhases = None,
    max_attempts: MaxAttempts = None,
    timeout: Timeout = None,
    deadline: Deadline = None,
    rollback: Rollback = None,
    lock: LockKey = None,
    lock_limit: LockLimit = None,
    allow_unknown_type: AllowUnknownType = False,
    as_json: AsJson = False,
    auth: Auth = Authentication.NONE,
    owner: Owner = None,
) -> None:
    """Create a schedule; give exactly one of --cron, --rate, --interval, --date and --permanent."""
    clock = context.ensure_object(Clock)
    fields: ScheduleFields = {
        **timing_fields(
            clock,
            cron=cron,
            rate=rate,
            interval=interval,
            dates=date,
            permanent=permanent,
            dialect=dialect,
            timezone=timezone,
            dst_gap=dst_gap,
            dst_fold=dst_fold,
            calendars=calendar,
            on_excluded=on_excluded,
            jitter=jitter,
            start=start,
            end=end,
            runs=runs,
        ),
        **rule_fields(overlap, catch_up, pause_on_failure=pause_on_failure),
    }
    template = task_fields(
        clock,
        payload=payload,
        at=None,
        delay=None,
        priority=priority,
        name=None,
        tags=tag or [],
        http_url=http_url,
        http_phases=http_phase or [],
        max_attempts=max_attempts,
        timeout=timeout,
        deadline=deadline,
        rollback=rollback,
        lock=lock,
        lock_limit=lock_limit,
    )
    if allow_unknown_type:
        template["allow_unknown_type"] = True
    with connected(context, url, auth, owner) as client:
        fields["task"] = {"type": task_type, **template}
        schedule = client.create_schedule(name, **fields)
    show(schedule, clock, as_json=as_json)


@app.command()
def change(  # noqa: PLR0913 - a command's options are its parameters
    context: typer.Context,
    name: ScheduleName,
    *,
    url: Url,
    task_type: Annotated[
        str | None, typer.Option("--type", metavar="TYPE", help="Which handler runs its tasks.")
    ] = None,
    cron: Cron = None,
    rate: Rate = None,
    interval: Interval = None,
    date: Date = None,
    permanent: Permanent = None,
    dialect: DialectOption = None,
    timezone: Timezone = None,
    dst_gap: DstGap = None,
    dst_fold: DstFold = None,
    calendar: CalendarNames = None,
    no_calendars: Annotated[bool, typer.Option("--no-calendars", help="Heed no calendar any more.")] = False,
    on_excluded: OnExcludedOption = None,
    jitter: Jitter = None,
    start: Start = None,
    end: End = None,
    runs: Runs = None,
    overlap: OverlapOption = None,
    catch_up: CatchUp = None,
    pause_on_failure: PauseOnFailure = None,
    payload: Payload = None,
    priority: PriorityOption = None,
    tag: Tag = None,
    http_url: HttpUrl = None,
    http_phase: HttpPhases = None,
    max_attempts: MaxAttempts = None,
    timeout: Timeout = None,
    deadline: Deadline = None,
    rollback: Rollback = None,
    lock: LockKey = None,
    lock_limit: LockLimit = None,
    if_match: IfMatch = None,
    as_json: AsJson = False,
    auth: Auth = Authentication.NONE,
    owner: Owner = None,
) -> None:
    """Change a schedule; what no option names stays as it is. What is queued of it is dropped and made anew."""
    clock = context.ensure_object(Clock)
    changes: ScheduleFields = {
        **timing_fields(
            clock,
            cron=cron,
            rate=rate,
            interval=interval,
            dates=date,
            permanent=permanent,
            dialect=dialect,
            timezone=timezone,
            dst_gap=dst_gap,
            dst_fold=dst_fold,
            calendars=calendar,
            on_excluded=on_excluded,
            jitter=jitter,
            start=start,
            end=end,
            runs=runs,
        ),
        **rule_fields(overlap, catch_up, pause_on_failure=pause_on_failure),
    }
    if no_calendars:
        changes["calendars"] = []
    template = task_fields(
        clock,
        payload=payload,
        at=None,
        delay=None,
        priority=priority,
        name=None,
        tags=tag or [],
        http_url=http_url,
        http_phases=http_phase or [],
        max_attempts=max_attempts,
        timeout=timeout,
        deadline=deadline,
        rollback=rollback,
        lock=lock,
        lock_limit=lock_limit,
    )
    if not changes and not template and task_type is None:
        raise typer.BadParameter("nothing to change: give at least one option such as --cron or --payload")
    with connected(context, url, auth, owner) as client:
        if template or task_type is not None:
            if_match = _with_task(client, name, changes, template, task_type, if_match)
        schedule = client.change_schedule(name, if_match=if_match, **changes)
    show(schedule, clock, as_json=as_json)


@app.command()
def delete(
    context: typer.Context,
    name: ScheduleName,
    *,
    url: Url,
    as_json: AsJson = False,
    auth: Auth = Authentication.NONE,
    owner: Owner = None,
) -> None:
    """Delete a schedule; its queued tasks will not run."""
    with connected(context, url, auth, owner) as client:
        schedule = client.delete_schedule(name)
    if as_json:
        show_json(schedule.document)
    else:
        say(f"deleted the schedule {schedule.name}; its queued tasks will not run")


@app.command()
def occurrences(  # noqa: PLR0913 - a command's options are its parameters
    context: typer.Context,
    name: ScheduleName,
    *,
    url: Url,
    start: From = None,
    end: Annotated[str | None, typer.Option("--to", metavar="TIME", help="Until when.")] = None,
    count: Count = 20,
    as_json: AsJson = False,
    auth: Auth = Authentication.NONE,
    owner: Owner = None,
) -> None:
    """List occurrences with their tasks: past ones with --from, else those to come; with --json, one array."""
    clock = context.ensure_object(Clock)
    first = None if start is None else moment(start, clock, "--from")
    last = None if end is None else moment(end, clock, "--to")
    with connected(context, url, auth, owner) as client:
        found = client.list_occurrences(name, start=first, end=last, limit=count)
    if as_json:
        show_json([each.document for each in found])
    else:
        show_occurrences(found, clock)


@app.command()
def preview(  # noqa: PLR0913 - a command's options are its parameters
    context: typer.Context,
    *,
    url: Url,
    cron: Cron = None,
    rate: Rate = None,
    interval: Interval = None,
    date: Date = None,
    permanent: Permanent = None,
    dialect: DialectOption = None,
    timezone: Timezone = None,
    dst_gap: DstGap = None,
    dst_fold: DstFold = None,
    calendar: CalendarNames = None,
    on_excluded: OnExcludedOption = None,
    jitter: Jitter = None,
    start: Start = None,
    end: End = None,
    runs: Runs = None,
    begin: From = None,
    count: Count = 10,
    as_json: AsJson = False,
    auth: Auth = Authentication.NONE,
    owner: Owner = None,
) -> None:
    """Show what a timing means, with each decision about clocks and calendars, and create nothing."""
    clock = context.ensure_object(Clock)
    timing = timing_fields(
        clock,
        cron=cron,
        rate=rate,
        interval=interval,
        dates=date,
        permanent=permanent,
        dialect=dialect,
        timezone=timezone,
        dst_gap=dst_gap,
        dst_fold=dst_fold,
        calendars=calendar,
        on_excluded=on_excluded,
        jitter=jitter,
        start=start,
        end=end,
        runs=runs,
    )
    first = None if begin is None else moment(begin, clock, "--from")
    with connected(context, url, auth, owner) as client:
        found = client.preview_schedule(start=first, count=count, **timing)
    if as_json:
        show_json([each.document for each in found])
    else:
        show_preview(found)


def _with_task(
    client: Client,
    name: str,
    changes: ScheduleFields,
    template: TaskFields,
    task_type: str | None,
    if_match: str | None,
) -> str:
    """Put the whole new task into the changes, for the API replaces it as a whole; the version it is good for."""
    schedule = client.get_schedule(name)
    before = {key: value for key, value in schedule.task.items() if value is not None}
    named = {} if task_type is None else {"type": task_type}
    changes["task"] = {**before, **template, **named}  # type: ignore[typeddict-item] # the API answers what it takes
    return if_match or schedule.etag


schedule_control.add_to(app)
apply.add_to(app)
