"""`duetime tasks`: actions on one task, from `pause` to `progress`."""

from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Annotated

import typer

from duetime_client.commands.command_help import examples
from duetime_client.commands.connection import Call, SilentCall
from duetime_client.commands.event_views import show_events
from duetime_client.commands.option_bundles import CommandGroup
from duetime_client.commands.output_streams import say, show_json
from duetime_client.commands.task_arguments import json_of
from duetime_client.commands.task_options import Fence, HttpQuery, IfMatch, Reason, TaskId
from duetime_client.commands.task_views import show_attempts, show_steps, show_task

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime_client.client import Client
    from duetime_client.task import Task

app = CommandGroup()


def action(name: str, help_text: str, act: "Callable[[Client], Callable[..., Task]]", starts: str = "") -> None:
    """Register a command that applies an action to a task and shows the task."""

    def command(call: Call, task_id: TaskId, *, reason: Reason = "", if_match: IfMatch = None) -> None:
        with call.client() as client:
            task = act(client)(task_id, reason=reason, if_match=if_match)
        call.show(task, partial(show_task, starts=starts))

    app.command(name, help=help_text)(examples(f"duetime tasks {name} ID")(command))


action(
    "pause",
    "Pause a task; a running task is asked to pause, and pauses when it can.",
    lambda client: client.tasks.pause,
)
action(
    "resume",
    "Resume a paused task: at its due time, or now if the due time has passed.",
    lambda client: client.tasks.resume,
)
action("run", "Start a task now, before its due time.", lambda client: client.tasks.run, "now, before its due time")
action("retry", "Run a failed task again, from its first attempt.", lambda client: client.tasks.retry)
action("rollback", "Ask the target to undo a task that has ended.", lambda client: client.tasks.rollback)
action("reject", "Reject a task that waits for an approval.", lambda client: client.tasks.reject)


@app.command()
@examples("duetime tasks approve ID --payload '{\"limit\": 500}' --reason 'checked by finance'")
def approve(
    call: Call,
    task_id: TaskId,
    *,
    payload: Annotated[
        str | None, typer.Option(metavar="JSON", help="Result of the task: JSON, @file, or - for standard input.")
    ] = None,
    reason: Reason = "",
    if_match: IfMatch = None,
) -> None:
    """Approve a task that waits for an approval."""
    value = None if payload is None else json_of(payload)
    with call.client() as client:
        task = client.tasks.approve(task_id, value, reason=reason, if_match=if_match)
    call.show(task, show_task)


@app.command()
@examples("duetime tasks delete ID")
def delete(call: SilentCall, task_id: TaskId, *, if_match: IfMatch = None) -> None:
    """Delete a task with its payload, result and attempts; a task that has not started is cancelled first."""
    with call.client() as client:
        client.tasks.delete(task_id, if_match=if_match)
    say(f"deleted the task {task_id}")


@app.command()
@examples("duetime tasks attempts ID", "duetime tasks attempts ID --steps")
def attempts(
    call: Call,
    task_id: TaskId,
    *,
    steps: Annotated[bool, typer.Option("--steps", help="Show the completed steps of all attempts instead.")] = False,
) -> None:
    """Show the finished attempts of a task: worker, times, outcome and cost; with --json, as one array."""
    with call.client() as client:
        if steps:
            call.show_all(client.tasks.list_steps(task_id), show_steps)
        else:
            call.show_all(client.tasks.list_attempts(task_id), show_attempts)


@app.command()
@examples("duetime tasks events ID")
def events(call: Call, task_id: TaskId) -> None:
    """Show the history of a task: every action with its actor and reason, the attempts, and the end."""
    with call.client() as client:
        history = client.tasks.list_events(task_id)
    call.show(history, show_events)


@app.command("query")
@examples("duetime tasks query ID progress")
def query_(
    call: Call,
    task_id: TaskId,
    action: Annotated[HttpQuery, typer.Argument(help="What to query; the endpoint must support it.")],
) -> None:
    """Query the endpoint of a task about its state; exit code 1 if it responds with an error."""
    with call.client() as client:
        reply = client.tasks.query(task_id, action)
    show_json(reply.document if call.as_json else reply.body)
    if reply.status >= HTTPStatus.BAD_REQUEST:
        raise typer.Exit(1)


@app.command()
@examples(
    "duetime tasks notify ID --fence 1 --result '{\"rows\": 17}'",
    "duetime tasks notify ID --fence 1 --error Timeout --message 'no answer in 60 s'",
)
def notify(
    call: Call,
    task_id: TaskId,
    *,
    fence: Fence,
    result: Annotated[
        str | None, typer.Option(metavar="JSON", help="Result of a success: JSON, @file, or - for standard input.")
    ] = None,
    error: Annotated[str | None, typer.Option(metavar="TYPE", help="Type of the error of a failure.")] = None,
    message: Annotated[str, typer.Option(metavar="TEXT", help="Message of the error; needs --error.")] = "",
    unretriable: Annotated[bool, typer.Option("--unretriable", help="Do not retry.")] = False,
) -> None:
    """Report the outcome of an attempt whose target accepted the work: success, or a failure with --error."""
    if error is None and (message or unretriable):
        raise typer.BadParameter("needs --error", param_hint="--message" if message else "--unretriable")
    if error is not None and result is not None:
        raise typer.BadParameter("give either --result or --error, not both")
    value = None if result is None else json_of(result, "--result")
    with call.client() as client:
        if error is None:
            task = client.tasks.notify_success(task_id, fence, value)
        else:
            task = client.tasks.notify_failure(task_id, fence, error, message, retriable=not unretriable)
    call.show(task, show_task)


@app.command()
@examples("duetime tasks heartbeat ID --fence 1")
def heartbeat(call: Call, task_id: TaskId, *, fence: Fence) -> None:
    """Send a heartbeat for an attempt; the task shows whether a pause or a cancellation was requested."""
    with call.client() as client:
        task = client.tasks.report_heartbeat(task_id, fence)
    call.show(task, show_task)


@app.command()
@examples("duetime tasks progress ID 40 --fence 1 --message 'row 400 of 1000'")
def progress(
    call: Call,
    task_id: TaskId,
    percent: Annotated[int, typer.Argument(metavar="PERCENT", min=0, max=100, help="Progress in percent.")],
    *,
    fence: Fence,
    message: Annotated[str, typer.Option(metavar="TEXT", help="A short text about the progress.")] = "",
) -> None:
    """Report the progress of an attempt; the report is also a heartbeat."""
    with call.client() as client:
        task = client.tasks.report_progress(task_id, fence, percent, message)
    call.show(task, show_task)
