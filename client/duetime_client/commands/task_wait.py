"""`duetime tasks`: wait, watch."""

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from duetime_client.commands import watch as changes
from duetime_client.commands.clock import Clock
from duetime_client.commands.command_help import examples
from duetime_client.commands.connection import Call
from duetime_client.commands.option_bundles import CommandGroup
from duetime_client.commands.output_streams import console, show_json
from duetime_client.commands.task_arguments import seconds
from duetime_client.commands.task_options import OnlyState, OnlyTag, OnlyType
from duetime_client.commands.task_views import show_tasks
from duetime_client.errors import NotFound, Problem
from duetime_client.plurals import counted
from duetime_client.polling import pause_after
from duetime_common.limits import MAX_BATCH

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime_client.client import Client
    from duetime_client.task import Task

app = CommandGroup()
TIMED_OUT = 4
"""Exit code of a wait that timed out."""

Ids = Annotated[list[str], typer.Argument(metavar="ID", help="Ids of tasks, or - for a list on standard input.")]


@app.command()
@examples("duetime tasks wait ID", "duetime tasks wait - --timeout 10m")
def wait(
    call: Call,
    task_ids: Ids,
    *,
    timeout: Annotated[str | None, typer.Option(metavar="DURATION", help="Maximum time to wait: 90, 5m, 1h.")] = None,
) -> None:
    """Wait until tasks have ended, and show them.

    Exit code 0 if all tasks succeeded, 1 if a task did not succeed, 4 after a timeout.
    """
    clock = call.clock
    patience = None if timeout is None else seconds(timeout, "--timeout")
    wanted = list(dict.fromkeys(each.upper() for each in _words(task_ids)))
    with call.client() as client, console(stderr=True).status("") as status:
        ended = waited_for(client, wanted, clock, patience, lambda left: status.update(f"{counted(left, 'task')} open"))
        # `waited_for` lists tasks without their results; only the JSON output needs the results.
        tasks = [client.tasks.get(each) if call.as_json else ended[each] for each in wanted]
    if call.as_json:
        show_json([task.document for task in tasks])
    else:
        show_tasks(tasks, clock, more=False)
    if any(not task.is_terminal for task in tasks):
        raise typer.Exit(TIMED_OUT)
    if any(task.state != "succeeded" for task in tasks):
        raise typer.Exit(1)


def waited_for(
    client: "Client", task_ids: Sequence[str], clock: Clock, patience: float | None, on_poll: "Callable[[int], object]"
) -> "dict[str, Task]":
    """Wait until all tasks have ended or the time has passed, and return the tasks.

    Raises:
        NotFound: One of the ids has no task.
    """
    found: dict[str, Task] = {}
    began, pause = clock.now(), 0.0
    while True:
        pending = [each for each in task_ids if each not in found or not found[each].is_terminal]
        for start in range(0, len(pending), MAX_BATCH):
            chunk = pending[start : start + MAX_BATCH]
            found |= {task.id: task for task in client.tasks.list(ids=chunk)}
            _reject_missing(chunk, found)
        left = [found[each] for each in task_ids if not found[each].is_terminal]
        on_poll(len(left))
        now = clock.now()
        waited = (now - began).total_seconds()
        if not left or (patience is not None and waited >= patience):
            return found
        pause = min(pause_after(task, pause, now) for task in left)
        clock.sleep(pause if patience is None else min(pause, patience - waited))


def _reject_missing(wanted: Sequence[str], found: "dict[str, Task]") -> None:
    missing = [each for each in wanted if each not in found]
    if missing:
        detail = f"there is no task {missing[0]}" + (f", nor {len(missing) - 1} others" if missing[1:] else "")
        raise NotFound(Problem(404, "task_not_found", "There is no such task", detail))


def _words(task_ids: Sequence[str]) -> list[str]:
    words = sys.stdin.read().split() if list(task_ids) == ["-"] else list(task_ids)
    if not words:
        raise typer.BadParameter("names no task", param_hint="ID")
    return words


@app.command()
@examples("duetime tasks watch", "duetime tasks watch --state failed --type report", "duetime tasks watch ID")
def watch(
    call: Call,
    task_id: Annotated[
        str | None, typer.Argument(metavar="[ID]", help="Id of a task to watch until it has ended.")
    ] = None,
    *,
    state: OnlyState = None,
    task_type: OnlyType = None,
    tag: OnlyTag = None,
) -> None:
    """Print changes to tasks as they happen: to one task, or to all of your tasks that match a filter."""
    changes.watch(call, task_id, mine=task_id is None, state=state, task_type=task_type, tag=tag)
