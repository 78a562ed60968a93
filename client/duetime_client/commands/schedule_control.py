"""`duetime schedules`: pause, resume, update-occurrence, run."""

from collections.abc import Mapping
from typing import Annotated, Literal

import typer

from duetime_client.commands.clock import Clock
from duetime_client.commands.command_help import examples
from duetime_client.commands.connection import Deployment, connected
from duetime_client.commands.document_output import AsJson
from duetime_client.commands.event_views import show_schedule_events
from duetime_client.commands.output_streams import show_json
from duetime_client.commands.schedule_options import ScheduleName
from duetime_client.commands.schedule_views import show
from duetime_client.commands.task_arguments import moment
from duetime_client.commands.task_options import IdempotencyKey, IfMatch
from duetime_client.commands.task_view import show as show_task

_OCCURRENCE_ACTIONS: Mapping[str, Literal["skip", "move", "run_now", "restore"]] = {
    "now": "run_now",
    "skip": "skip",
    "restore": "restore",
}
Why = Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; shown with the events of the schedule.")]


@examples("duetime schedules pause nightly --reason 'the source is down'")
def pause(
    context: typer.Context,
    name: ScheduleName,
    *,
    deployment: Deployment,
    reason: Annotated[str, typer.Option(metavar="TEXT", help="Why; shown with the schedule.")] = "",
    if_match: IfMatch = None,
    as_json: AsJson = False,
) -> None:
    """Pause a schedule; its queued tasks will not run."""
    with connected(context, deployment) as client:
        schedule = client.schedules.pause(name, reason, if_match=if_match)
    show(schedule, context.ensure_object(Clock), as_json=as_json)


@examples("duetime schedules resume nightly")
def resume(
    context: typer.Context,
    name: ScheduleName,
    *,
    deployment: Deployment,
    reason: Why = "",
    if_match: IfMatch = None,
    as_json: AsJson = False,
) -> None:
    """Resume a paused schedule from now on; occurrences during the pause are not caught up."""
    with connected(context, deployment) as client:
        schedule = client.schedules.resume(name, reason=reason, if_match=if_match)
    show(schedule, context.ensure_object(Clock), as_json=as_json)


@examples(
    "duetime schedules update-occurrence nightly 2027-01-01T01:30 2027-01-01T09:00",
    "duetime schedules update-occurrence nightly 2027-01-02T01:30 skip",
)
def update_occurrence(  # noqa: PLR0913 - a command's options are its parameters
    context: typer.Context,
    name: ScheduleName,
    scheduled_at: Annotated[str, typer.Argument(metavar="TIME", help="When the occurrence is scheduled.")],
    to: Annotated[str, typer.Argument(metavar="TO", help="When it runs instead; or now, skip or restore.")],
    *,
    deployment: Deployment,
    reason: Why = "",
    if_match: IfMatch = None,
    as_json: AsJson = False,
) -> None:
    """Move one occurrence that is to come, run it now, skip it, or restore it to its time."""
    clock = context.ensure_object(Clock)
    action = _OCCURRENCE_ACTIONS.get(to, "move")
    due_at = moment(to, clock, "TO") if action == "move" else None
    at = moment(scheduled_at, clock, "TIME")
    with connected(context, deployment) as client:
        schedule = client.schedules.update_occurrence(name, at, action, due_at=due_at, reason=reason, if_match=if_match)
    show(schedule, clock, as_json=as_json)


@examples("duetime schedules run nightly")
def run(
    context: typer.Context,
    name: ScheduleName,
    *,
    deployment: Deployment,
    reason: Why = "",
    idempotency_key: IdempotencyKey = None,
    if_match: IfMatch = None,
    as_json: AsJson = False,
) -> None:
    """Run a schedule's task once, now, and show the task."""
    with connected(context, deployment) as client:
        task = client.schedules.run(name, reason=reason, idempotency_key=idempotency_key, if_match=if_match)
    show_task(task, context.ensure_object(Clock), as_json=as_json)


@examples("duetime schedules events nightly")
def events(context: typer.Context, name: ScheduleName, *, deployment: Deployment, as_json: AsJson = False) -> None:
    """Show what was done to a schedule: by whom, when and why."""
    with connected(context, deployment) as client:
        history = client.schedules.list_events(name)
    if as_json:
        show_json(history.document)
    else:
        show_schedule_events(history, context.ensure_object(Clock))


def add_to(app: typer.Typer) -> None:
    """Add these commands to those of schedules."""
    for command in (pause, resume, update_occurrence, run, events):
        app.command()(command)
