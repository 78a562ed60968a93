"""`duetime tasks`: create, get, list, change, cancel."""

from itertools import islice
from typing import Annotated

import typer

from duetime_client.authentication import Authentication
from duetime_client.client import Client
from duetime_client.commands.clock import Clock
from duetime_client.commands.connection import AsJson, Auth, Owner, Url, connected
from duetime_client.commands.console import console, show_json
from duetime_client.commands.filter_actions import Wanted, filter_action, open_tasks
from duetime_client.commands.messages import show_created, waiting_line
from duetime_client.commands.targets import AwsOptions
from duetime_client.commands.task_arguments import task_fields, task_filter
from duetime_client.commands.task_options import (
    AllowUnknownType,
    AnyTaskId,
    Arn,
    Async,
    At,
    CallbackUrl,
    Deadline,
    DetailType,
    DryRun,
    DueFrom,
    DueTo,
    Every,
    HttpPhases,
    HttpQueries,
    HttpUrl,
    IfMatch,
    In,
    LockKey,
    LockLimit,
    MaxAttempts,
    Name,
    OfName,
    OfState,
    OfTag,
    OfType,
    Order,
    Payload,
    PerSecond,
    PriorityOption,
    Rollback,
    Tag,
    TaskId,
    Timeout,
    Yes,
)
from duetime_client.commands.task_table import show_tasks
from duetime_client.commands.task_view import show
from duetime_client.task import Task

app = typer.Typer(help="Create tasks and see what becomes of them.", no_args_is_help=True)

MAX_PAGE = 100
"""The API puts at most this many tasks on a page."""


@app.command()
def create(  # noqa: PLR0913 - a command's options are its parameters
    context: typer.Context,
    task_type: Annotated[str, typer.Argument(metavar="TYPE", help="Which handler runs it.")],
    *,
    url: Url,
    payload: Payload = None,
    at: At = None,
    delay: In = None,
    priority: PriorityOption = None,
    name: Name = None,
    tag: Tag = None,
    arn: Arn = None,
    notifies: Async = False,
    detail_type: DetailType = None,
    http_url: HttpUrl = None,
    http_phase: HttpPhases = None,
    http_query: HttpQueries = None,
    callback_url: CallbackUrl = None,
    max_attempts: MaxAttempts = None,
    timeout: Timeout = None,
    deadline: Deadline = None,
    rollback: Rollback = None,
    lock: LockKey = None,
    lock_limit: LockLimit = None,
    allow_unknown_type: AllowUnknownType = False,
    idempotency_key: Annotated[
        str | None, typer.Option(metavar="KEY", help="Creating again with the same key creates nothing new.")
    ] = None,
    wait: Annotated[
        bool, typer.Option("--wait", help="Wait for the outcome; exit code 1 if it is not success.")
    ] = False,
    as_json: AsJson = False,
    auth: Auth = Authentication.NONE,
    owner: Owner = None,
) -> None:
    """Create a task, due now unless --at or --in says otherwise."""
    clock = context.ensure_object(Clock)
    fields = task_fields(
        clock,
        payload=payload,
        at=at,
        delay=delay,
        priority=priority,
        name=name,
        tags=tag or [],
        aws=AwsOptions(arn, notifies, detail_type),
        http_url=http_url,
        http_phases=http_phase or [],
        http_queries=http_query or [],
        callback_url=callback_url,
        max_attempts=max_attempts,
        timeout=timeout,
        deadline=deadline,
        rollback=rollback,
        lock=lock,
        lock_limit=lock_limit,
    )
    if allow_unknown_type:
        fields["allow_unknown_type"] = True
    with connected(context, url, auth, owner) as client:
        task = client.create_task(task_type, idempotency_key=idempotency_key, **fields)
        if wait:
            show_created(task)
            task = outcome(client, task, clock)
    show(task, clock, as_json=as_json)
    if wait and task.state != "succeeded":
        raise typer.Exit(1)


@app.command()
def get(
    context: typer.Context,
    task_id: TaskId,
    *,
    url: Url,
    as_json: AsJson = False,
    auth: Auth = Authentication.NONE,
    owner: Owner = None,
) -> None:
    """Show one task."""
    with connected(context, url, auth, owner) as client:
        task = client.get_task(task_id)
    show(task, context.ensure_object(Clock), as_json=as_json)


@app.command("list")
def list_(  # noqa: PLR0913 - a command's options are its parameters
    context: typer.Context,
    *,
    url: Url,
    state: Annotated[str | None, typer.Option(metavar="STATE", help="Only tasks in this state.")] = None,
    task_type: Annotated[str | None, typer.Option("--type", metavar="TYPE", help="Only tasks of this type.")] = None,
    name: Annotated[str | None, typer.Option(metavar="NAME", help="Only tasks of this name.")] = None,
    tag: Annotated[list[str] | None, typer.Option("--tag", metavar="KEY=VALUE", help="Only with this tag.")] = None,
    due_from: Annotated[str | None, typer.Option(metavar="TIME", help="Only tasks due at or after this.")] = None,
    due_to: Annotated[str | None, typer.Option(metavar="TIME", help="Only tasks due before this.")] = None,
    parent: Annotated[str | None, typer.Option(metavar="ID", help="Only nodes of this topology.")] = None,
    order: Annotated[Order | None, typer.Option(help="By due time.")] = None,
    limit: Annotated[int, typer.Option(metavar="N", min=1, help="How many tasks at most.")] = 50,
    everything: Annotated[bool, typer.Option("--all", help="Every task, however many there are.")] = False,
    as_json: AsJson = False,
    auth: Auth = Authentication.NONE,
    owner: Owner = None,
) -> None:
    """List tasks; with --json, one array of them."""
    clock = context.ensure_object(Clock)
    filters = task_filter(
        clock, state=state, task_type=task_type, name=name, tags=tag or [], due_from=due_from, due_to=due_to
    )
    if parent is not None:
        filters["parent"] = parent
    if order:
        filters["order"] = order.value
    with connected(context, url, auth, owner) as client:
        # One more than is shown, to know whether there are more.
        wanted = None if everything else limit + 1
        tasks = list(islice(client.list_tasks(page_size=min(wanted or MAX_PAGE, MAX_PAGE), **filters), wanted))
    shown = tasks if everything else tasks[:limit]
    if as_json:
        show_json([task.document for task in shown])
    else:
        show_tasks(shown, clock, more=len(tasks) > len(shown))


@app.command()
def change(  # noqa: PLR0913 - a command's options are its parameters
    context: typer.Context,
    task_id: AnyTaskId = None,
    *,
    url: Url,
    payload: Payload = None,
    at: At = None,
    delay: In = None,
    priority: PriorityOption = None,
    name: Name = None,
    tag: Tag = None,
    arn: Arn = None,
    notifies: Async = False,
    detail_type: DetailType = None,
    http_url: HttpUrl = None,
    http_phase: HttpPhases = None,
    http_query: HttpQueries = None,
    callback_url: CallbackUrl = None,
    max_attempts: MaxAttempts = None,
    timeout: Timeout = None,
    deadline: Deadline = None,
    rollback: Rollback = None,
    lock: LockKey = None,
    lock_limit: LockLimit = None,
    if_match: IfMatch = None,
    state: OfState = None,
    task_type: OfType = None,
    of_name: OfName = None,
    of_tag: OfTag = None,
    due_from: DueFrom = None,
    due_to: DueTo = None,
    every: Every = False,
    per_second: PerSecond = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
    auth: Auth = Authentication.NONE,
    owner: Owner = None,
) -> None:
    """Change a task that has not started, or every such task that a filter names.

    What no option names stays as it is; the tags that are given take the place of all former ones, --max-attempts
    that of the whole retry policy.
    """
    clock = context.ensure_object(Clock)
    changes = task_fields(
        clock,
        payload=payload,
        at=at,
        delay=delay,
        priority=priority,
        name=name,
        tags=tag or [],
        aws=AwsOptions(arn, notifies, detail_type),
        http_url=http_url,
        http_phases=http_phase or [],
        http_queries=http_query or [],
        callback_url=callback_url,
        max_attempts=max_attempts,
        timeout=timeout,
        deadline=deadline,
        rollback=rollback,
        lock=lock,
        lock_limit=lock_limit,
    )
    if not changes:
        raise typer.BadParameter("nothing to change: give at least one option such as --at or --payload")
    wanted = Wanted(
        state=state,
        task_type=task_type,
        name=of_name,
        tags=of_tag or [],
        due_from=due_from,
        due_to=due_to,
        every=every,
        per_second=per_second,
        dry_run=dry_run,
        yes=yes,
    )
    many = wanted.matches(task_id)
    if many and if_match is not None:
        raise typer.BadParameter("goes with an ID", param_hint="--if-match")
    with connected(context, url, auth, owner) as client:
        if task_id is None:
            filter_action(
                open_tasks(client),
                clock,
                wanted,
                "changed",
                lambda task_filter, options: client.change_tasks(task_filter, changes, **options),
                as_json=as_json,
            )
            return
        task = client.change_task(task_id, if_match=if_match, **changes)
    show(task, clock, as_json=as_json)


@app.command()
def cancel(  # noqa: PLR0913 - a command's options are its parameters
    context: typer.Context,
    task_id: AnyTaskId = None,
    *,
    url: Url,
    force: Annotated[
        bool, typer.Option("--force", help="Ask a task that runs to stop, which it does when it can.")
    ] = False,
    state: OfState = None,
    task_type: OfType = None,
    of_name: OfName = None,
    of_tag: OfTag = None,
    due_from: DueFrom = None,
    due_to: DueTo = None,
    every: Every = False,
    per_second: PerSecond = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
    auth: Auth = Authentication.NONE,
    owner: Owner = None,
) -> None:
    """Take back a task that has not started, or every such task that a filter names."""
    clock = context.ensure_object(Clock)
    wanted = Wanted(
        state=state,
        task_type=task_type,
        name=of_name,
        tags=of_tag or [],
        due_from=due_from,
        due_to=due_to,
        every=every,
        per_second=per_second,
        dry_run=dry_run,
        yes=yes,
    )
    wanted.matches(task_id)
    with connected(context, url, auth, owner) as client:
        if task_id is None:
            filter_action(
                open_tasks(client),
                clock,
                wanted,
                "cancelled",
                lambda task_filter, options: client.cancel_tasks(task_filter, force=force, **options),
                as_json=as_json,
            )
            return
        task = client.cancel_task(task_id, force=force)
    show(task, clock, as_json=as_json)


def outcome(client: Client, task: Task, clock: Clock) -> Task:
    """The task when it has ended, with a spinner on the error stream until then."""
    with console(stderr=True).status("") as status:
        for seen in client.follow_task(task.id):
            task = seen
            status.update(waiting_line(task, clock))
    return task
