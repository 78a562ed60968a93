"""`duetime schedules`: pause, resume, trigger, backfill."""

from typing import Annotated

import typer

from duetime_client.commands.clock import Clock
from duetime_client.commands.connection import AsJson, Deployment, connected
from duetime_client.commands.schedule_options import ScheduleName
from duetime_client.commands.schedule_views import show
from duetime_client.commands.task_arguments import moment
from duetime_client.commands.task_view import show as show_task


def pause(
    context: typer.Context,
    name: ScheduleName,
    *,
    deployment: Deployment,
    note: Annotated[str, typer.Option(metavar="TEXT", help="Reason; shown with the schedule.")] = "",
    as_json: AsJson = False,
) -> None:
    """Pause a schedule; its queued tasks will not run."""
    with connected(context, deployment) as client:
        schedule = client.pause_schedule(name, note)
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


def trigger(
    context: typer.Context,
    name: ScheduleName,
    *,
    deployment: Deployment,
    as_json: AsJson = False,
) -> None:
    """Run a schedule's task once, now, and show the task."""
    with connected(context, deployment) as client:
        task = client.trigger_schedule(name)
    show_task(task, context.ensure_object(Clock), as_json=as_json)


def backfill(
    context: typer.Context,
    name: ScheduleName,
    *,
    deployment: Deployment,
    start: Annotated[str, typer.Option("--from", metavar="TIME", help="Start of the period.")],
    end: Annotated[str, typer.Option("--until", metavar="TIME", help="End of the period, in the past.")],
    per_minute: Annotated[int | None, typer.Option(metavar="N", min=1, help="How many tasks per minute.")] = None,
    as_json: AsJson = False,
) -> None:
    """Run the occurrences of a past period, a number of them per minute."""
    clock = context.ensure_object(Clock)
    first, last = moment(start, clock, "--from"), moment(end, clock, "--until")
    with connected(context, deployment) as client:
        schedule = client.backfill_schedule(name, first, last, per_minute=per_minute)
    show(schedule, clock, as_json=as_json)


def cancel_backfill(
    context: typer.Context,
    name: ScheduleName,
    backfill_id: Annotated[str, typer.Argument(metavar="ID", help="Id of the backfill, from `schedules show`.")],
    *,
    deployment: Deployment,
    as_json: AsJson = False,
) -> None:
    """Stop a backfill; tasks that it has created still run."""
    with connected(context, deployment) as client:
        schedule = client.cancel_backfill(name, backfill_id)
    show(schedule, context.ensure_object(Clock), as_json=as_json)


def add_to(app: typer.Typer) -> None:
    """Add these commands to those of schedules."""
    for command in (pause, resume, trigger, backfill, cancel_backfill):
        app.command()(command)
