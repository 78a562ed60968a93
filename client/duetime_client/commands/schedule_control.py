"""`duetime schedules`: pause, resume, run, backfill, backfills, cancel-backfill."""

from typing import Annotated

import typer

from duetime_client.commands.clock import Clock
from duetime_client.commands.connection import AsJson, Deployment, connected
from duetime_client.commands.console import show_json
from duetime_client.commands.schedule_options import ScheduleName
from duetime_client.commands.schedule_views import show, show_backfills
from duetime_client.commands.task_arguments import moment
from duetime_client.commands.task_view import show as show_task


def pause(
    context: typer.Context,
    name: ScheduleName,
    *,
    deployment: Deployment,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why; shown with the schedule.")] = "",
    as_json: AsJson = False,
) -> None:
    """Pause a schedule; its queued tasks will not run."""
    with connected(context, deployment) as client:
        schedule = client.pause_schedule(name, reason)
    show(schedule, context.ensure_object(Clock), as_json=as_json)


def resume(
    context: typer.Context,
    name: ScheduleName,
    *,
    deployment: Deployment,
    as_json: AsJson = False,
) -> None:
    """Resume a paused schedule from now on; occurrences during the pause are not caught up."""
    with connected(context, deployment) as client:
        schedule = client.resume_schedule(name)
    show(schedule, context.ensure_object(Clock), as_json=as_json)


def run(
    context: typer.Context,
    name: ScheduleName,
    *,
    deployment: Deployment,
    as_json: AsJson = False,
) -> None:
    """Run a schedule's task once, now, and show the task."""
    with connected(context, deployment) as client:
        task = client.run_schedule(name)
    show_task(task, context.ensure_object(Clock), as_json=as_json)


def backfill(
    context: typer.Context,
    name: ScheduleName,
    *,
    deployment: Deployment,
    after: Annotated[str, typer.Option("--after", metavar="TIME", help="Start of the period.")],
    before: Annotated[str, typer.Option("--before", metavar="TIME", help="End of the period, excluded; in the past.")],
    per_minute: Annotated[int | None, typer.Option(metavar="N", min=1, help="How many tasks per minute.")] = None,
    as_json: AsJson = False,
) -> None:
    """Run the occurrences of a past period, a number of them per minute."""
    clock = context.ensure_object(Clock)
    start, end = moment(after, clock, "--after"), moment(before, clock, "--before")
    with connected(context, deployment) as client:
        run = client.create_backfill(name, start, end, per_minute=per_minute)
    show_backfills([run], clock, as_json=as_json)


def backfills(
    context: typer.Context,
    name: ScheduleName,
    *,
    deployment: Deployment,
    as_json: AsJson = False,
) -> None:
    """List the backfills of a schedule; with --json, as one array."""
    clock = context.ensure_object(Clock)
    with connected(context, deployment) as client:
        found = client.list_backfills(name)
    if as_json:
        show_json([each.document for each in found])
    else:
        show_backfills(found, clock)


def cancel_backfill(
    context: typer.Context,
    name: ScheduleName,
    backfill_id: Annotated[str, typer.Argument(metavar="ID", help="Id of the backfill, from `schedules backfills`.")],
    *,
    deployment: Deployment,
    as_json: AsJson = False,
) -> None:
    """Cancel a backfill; tasks that it has created still run."""
    with connected(context, deployment) as client:
        run = client.cancel_backfill(name, backfill_id)
    show_backfills([run], context.ensure_object(Clock), as_json=as_json)


def add_to(app: typer.Typer) -> None:
    """Add these commands to those of schedules."""
    for command in (pause, resume, run, backfill, backfills, cancel_backfill):
        app.command()(command)
