"""`duetime tasks`: create, get, list, update, cancel."""

from typing import TYPE_CHECKING, Annotated

import typer

from duetime_client.client import Client
from duetime_client.commands import task_control, task_wait
from duetime_client.commands.clock import Clock
from duetime_client.commands.command_help import examples
from duetime_client.commands.connection import Call
from duetime_client.commands.filter_actions import Selection, filter_action, open_tasks
from duetime_client.commands.list_reader import show_list
from duetime_client.commands.messages import show_conflict, show_created, waiting_line
from duetime_client.commands.option_bundles import CommandGroup
from duetime_client.commands.output_streams import console
from duetime_client.commands.task_arguments import (
    after_fields,
    due_fields,
    list_filter,
    order_fields,
    task_fields,
    unique_fields,
)
from duetime_client.commands.task_files import create_from_file, read_lines
from duetime_client.commands.task_options import (
    REQUEST,
    AllowUnknownType,
    AnyTaskId,
    AnyTaskType,
    BulkActionOptions,
    DueOptions,
    FilterOptions,
    IdempotencyKey,
    IfMatch,
    LimitOptions,
    ListFilterOptions,
    OfState,
    Reason,
    TaskId,
    TaskOptions,
    UniqueOptions,
    WithEstimate,
)
from duetime_client.commands.task_views import show_count, show_task, show_tasks

if TYPE_CHECKING:
    from duetime_client.task import Task
    from duetime_client.task_request_fields import TaskFields

app = CommandGroup(help="Create, follow, update and cancel tasks.", no_args_is_help=True)
app.add_typer(task_control.app)
app.add_typer(task_wait.app)


@app.command()
@examples(
    'duetime tasks create report --payload \'{"month": "2026-11"}\' --in 5m --wait',
    "duetime tasks create --file tasks.jsonl --tag team=dba",
)
def create(  # noqa: PLR0913 - arguments, and bundles of options
    call: Call,
    task_type: AnyTaskType = None,
    *,
    task: TaskOptions,
    due: DueOptions,
    unique: UniqueOptions,
    allow_unknown_type: AllowUnknownType = False,
    idempotency_key: IdempotencyKey = None,
    idempotency_key_seconds: Annotated[
        int | None,
        typer.Option(
            metavar="SECONDS",
            min=60,
            help="How long the idempotency key is remembered; by default, a day.",
            rich_help_panel=REQUEST,
        ),
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait for the outcome; exit code 1 unless it succeeded.")
    ] = False,
    estimate: WithEstimate = False,
    preview: Annotated[
        bool,
        typer.Option(
            "--preview", help="Create nothing: show when the task would start, and why.", rich_help_panel=REQUEST
        ),
    ] = False,
    file: Annotated[
        str | None, typer.Option("--file", "-f", metavar="FILE", help="Many tasks: JSON lines, *.csv, or - (stdin).")
    ] = None,
) -> None:
    """Create a task or the tasks of a file, due now unless --due-at or --in is given."""
    clock = call.clock
    fields: TaskFields = {
        **due_fields(due, clock),
        **task_fields(task),
        **unique_fields(unique),
        **order_fields(unique),
        **after_fields(unique),
    }
    if unique.group is not None:
        fields["group"] = {"id": unique.group}
    if allow_unknown_type:
        fields["allow_unknown_type"] = True
    if file is not None:
        has_life = idempotency_key_seconds is not None
        _reject_for_many(wait=wait, idempotency_key_seconds=has_life, estimate=estimate, preview=preview)
        lines = read_lines(file, {**({} if task_type is None else {"type": task_type}), **fields})
        with call.client() as client:
            create_from_file(client, lines, idempotency_key, as_json=call.as_json)
        return
    if task_type is None:
        raise typer.BadParameter("is missing: give it, or --file", param_hint="TYPE")
    if preview:
        from duetime_client.commands.why import show_preview  # noqa: PLC0415 - few commands are previews

        show_preview(call, task_type, fields)
        return
    if estimate and wait:
        raise typer.BadParameter("cannot be given together with --wait", param_hint="--estimate")
    with call.client() as client:
        life = idempotency_key_seconds
        created = client.tasks.create(
            task_type, idempotency_key=idempotency_key, idempotency_key_seconds=life, estimate=estimate, **fields
        )
        if created.on_conflict is not None:
            show_conflict(created, created.on_conflict)
        if wait:
            show_created(created)
            created = outcome(client, created, clock)
    call.show(created, show_task)
    if wait and created.state != "succeeded":
        raise typer.Exit(1)


def _reject_for_many(**given: bool) -> None:
    """Reject options of a single task."""
    if name := next((name for name, is_given in given.items() if is_given), None):
        instead = ": duetime tasks wait waits for many" if name == "wait" else ""
        raise typer.BadParameter(f"goes with one task{instead}", param_hint=f"--{name.replace('_', '-')}")


@app.command()
@examples("duetime tasks get ID", "duetime tasks get ID --query result")
def get(call: Call, task_id: TaskId) -> None:
    """Show one task."""
    with call.client() as client:
        task = client.tasks.get(task_id)
    call.show(task, show_task)


@app.command("list")
@examples(
    "duetime tasks list --state failed --type report",
    "duetime tasks list --tag team=dba --all -o jsonl",
    "duetime tasks list --query '[].[id, state, due_at]' -o text",
)
def list_(
    call: Call,
    *,
    filters: ListFilterOptions,
    limits: LimitOptions,
    count: Annotated[
        bool, typer.Option("--count", help="Show only the number (exact up to a thousand) and cost.")
    ] = False,
) -> None:
    """List tasks; with --json, as one array."""
    wanted = list_filter(filters, call.clock)
    with call.client() as client:
        if count:
            call.show(client.tasks.count(**wanted), show_count)
            return
        show_list(call, client, client.tasks.list(page_size=limits.page_size, **wanted), limits, show_tasks)


@app.command()
@examples(
    "duetime tasks update ID --due-at 2026-12-01T09:00", "duetime tasks update --type report --priority low --dry-run"
)
def update(  # noqa: PLR0913 - arguments, and bundles of options
    call: Call,
    task_id: AnyTaskId = None,
    *,
    task: TaskOptions,
    due: DueOptions,
    filters: FilterOptions,
    bulk: BulkActionOptions,
    if_match: IfMatch = None,
    state: OfState = None,
    reason: Reason = "",
) -> None:
    """Update a task that has not started, or all such tasks that match a filter.

    Fields without an option do not change. New tags are added to the existing tags, and --max-attempts changes only
    this part of the retry policy.
    """
    clock = call.clock
    changes: TaskFields = {**due_fields(due, clock), **task_fields(task)}
    if not changes:
        raise typer.BadParameter("nothing to update: give at least one option such as --due-at or --payload")
    selection = Selection(filters, bulk, state, reason=reason)
    if selection.is_given(task_id) and if_match is not None:
        raise typer.BadParameter("goes with an ID", param_hint="--if-match")
    with call.client() as client:
        if task_id is None:
            filter_action(
                call,
                selection,
                "updated",
                open_tasks(client),
                lambda task_filter, options: client.tasks.update_by_filter(task_filter, changes, **options),
            )
            return
        changed = client.tasks.update(task_id, if_match=if_match, reason=reason, **changes)
    call.show(changed, show_task)


@app.command()
@examples(
    "duetime tasks cancel ID --reason 'no longer needed'", "duetime tasks cancel --of-tag team=dba --state scheduled"
)
def cancel(  # noqa: PLR0913 - arguments, and bundles of options
    call: Call,
    task_id: AnyTaskId = None,
    *,
    filters: FilterOptions,
    bulk: BulkActionOptions,
    force: Annotated[bool, typer.Option("--force", help="Also ask a running task to stop as soon as it can.")] = False,
    children: Annotated[
        bool, typer.Option("--children", help="Also cancel the task's children and their descendants.")
    ] = False,
    if_match: IfMatch = None,
    state: OfState = None,
    reason: Reason = "",
) -> None:
    """Cancel a task that has not started, or all such tasks that match a filter."""
    selection = Selection(filters, bulk, state, reason=reason)
    if children and task_id is None:
        raise typer.BadParameter("goes with an ID", param_hint="--children")
    if selection.is_given(task_id) and if_match is not None:
        raise typer.BadParameter("goes with an ID", param_hint="--if-match")
    with call.client() as client:
        if task_id is None:
            filter_action(
                call,
                selection,
                "cancelled",
                open_tasks(client),
                lambda task_filter, options: client.tasks.cancel_by_filter(task_filter, force=force, **options),
            )
            return
        task = client.tasks.cancel(task_id, force=force, include_children=children, reason=reason, if_match=if_match)
    call.show(task, show_task)


def outcome(client: Client, task: "Task", clock: Clock) -> "Task":
    """Follow a task until it has ended, with a spinner on the error stream."""
    with console(stderr=True).status("") as status:
        for seen in client.tasks.follow(task.id):
            task = seen
            status.update(waiting_line(task, clock))
    return task
