"""`duetime locks`: lists, shows and releases locks; also shows unique keys and ordered keys."""

from collections.abc import Iterable, Iterator
from operator import itemgetter
from typing import Annotated

import typer
from rich.text import Text

from duetime_client.commands.clock import Clock
from duetime_client.commands.command_help import examples
from duetime_client.commands.connection import Call
from duetime_client.commands.formatting import timed
from duetime_client.commands.option_bundles import CommandGroup
from duetime_client.commands.output_streams import printable, say
from duetime_client.commands.tables import Column, show_table
from duetime_client.locks import Lock
from duetime_client.ordered_keys import OrderedKeyLine
from duetime_client.unique_keys import HeldUniqueKey

app = CommandGroup(help="See which tasks hold locks or wait for them; release a lock by force.", no_args_is_help=True)
_HEADINGS = ("lock", "task", "state")
_ORDERED_HEADINGS = ("key", "task", "place", "state", "due")
Key = Annotated[str, typer.Argument(metavar="KEY", help="Key of the lock.")]


@app.command("list")
@examples("duetime locks list")
def list_locks(call: Call) -> None:
    """List the locks that were used in the last day or so; with --json, as one array."""
    with call.client() as client:
        found = list(client.locks.list())
    call.show_all(found, show_locks)


@app.command()
@examples("duetime locks show database")
def show(call: Call, key: Key) -> None:
    """Show the tasks that hold a lock, and the waiting tasks in order."""
    with call.client() as client:
        lock = client.locks.get(key)
    call.show(lock, lambda lock, clock: show_locks([lock], clock))


@app.command()
@examples("duetime locks release database")
def release(call: Call, key: Key) -> None:
    """Take a lock from its holders by force; they stop at their next heartbeat, and the next task gets the lock."""
    with call.client() as client:
        lock = client.locks.release(key)
    if not call.as_json:
        say(f"released the lock {lock.key}")
    call.show(lock, lambda lock, clock: show_locks([lock], clock))


@app.command()
@examples("duetime locks list-unique-keys")
def list_unique_keys(call: Call) -> None:
    """List the keys of `unique` and `debounce` that tasks hold; with --json, as one array."""
    with call.client() as client:
        found = list(client.unique_keys.list())
    call.show_all(found, show_keys)


@app.command()
@examples("duetime locks show-unique-key customer-17")
def show_unique_key(call: Call, key: Annotated[str, typer.Argument(metavar="KEY", help="The unique key.")]) -> None:
    """Show the task that holds a unique key."""
    with call.client() as client:
        found = client.unique_keys.get(key)
    call.show(found, lambda found, clock: show_keys([found], clock))


@app.command()
@examples("duetime locks list-ordered-keys")
def list_ordered_keys(call: Call) -> None:
    """List the ordered keys that tasks have used, with the task whose turn it is; with --json, as one array."""
    with call.client() as client:
        found = list(client.ordered_keys.list())
    call.show_all(found, show_ordered_keys)


@app.command()
@examples("duetime locks show-ordered-key customer-17")
def show_ordered_key(call: Call, key: Annotated[str, typer.Argument(metavar="KEY", help="The ordered key.")]) -> None:
    """Show the tasks in the line of an ordered key, in order."""
    with call.client() as client:
        found = client.ordered_keys.get(key)
    call.show(found, lambda found, clock: show_ordered_keys([found], clock))


def show_ordered_keys(keys: Iterable[OrderedKeyLine], clock: Clock) -> None:
    """Print ordered keys as a table, with a row for each task."""
    entries = [row for key in keys for row in _ordered_rows(key, clock)]
    columns = [Column(name, itemgetter(index)) for index, name in enumerate(_ORDERED_HEADINGS)]
    show_table(entries, columns, "no ordered keys")


def _ordered_rows(key: OrderedKeyLine, clock: Clock) -> Iterator[tuple[Text, ...]]:
    """The rows of one key; only the first row has the key."""
    now, name = clock.now(), printable(key.key)
    if key.turn is None:
        yield name, Text(), Text("none has the turn"), Text(), Text()
        name = Text()
    places = [("has the turn", key.turn)] if key.turn else []
    places += [(f"position {position}", task) for position, task in enumerate(key.waiting, 1)]
    for place, task in places:
        yield name, printable(task.task_id), Text(place), Text(task.state), timed(task.due_at, clock, now, units=1)
        name = Text()


def show_keys(keys: Iterable[HeldUniqueKey], clock: Clock) -> None:
    """Print unique keys as a table."""
    now = clock.now()
    columns: list[Column[HeldUniqueKey]] = [
        Column("key", lambda each: each.key),
        Column("kind", lambda each: each.kind),
        Column("task", lambda each: each.holders[0].task_id),
        Column("state", lambda each: each.holders[0].state),
        Column("due", lambda each: timed(each.holders[0].due_at, clock, now, units=1)),
        Column("held until it has", lambda each: each.until),
    ]
    show_table(keys, columns, "no unique keys")


def show_locks(locks: Iterable[Lock], clock: Clock) -> None:
    """Print locks as a table, with a row for each holder and each waiting task."""
    entries = [row for lock in locks for row in rows(lock, clock)]
    show_table(entries, [Column(name, itemgetter(index)) for index, name in enumerate(_HEADINGS)], "no locks")


def rows(lock: Lock, clock: Clock) -> Iterator[tuple[Text, Text, Text]]:
    """The rows of one lock; only the first row has the lock's key."""
    now = clock.now()
    key = printable(lock.key)
    if not lock.holders and not lock.waiters:
        yield key, Text(), Text("free", "green")
    for holder in lock.holders:
        shared = "shared, " if holder.mode == "shared" else ""
        held = f"{shared}held until " if holder.fence is not None else f"{shared}reserved until "
        yield key, printable(holder.task_id), Text.assemble(held, timed(holder.expires_at, clock, now, units=1))
        key = Text()
    for position, waiter in enumerate(lock.waiters, 1):
        due = timed(waiter.due_at, clock, now, units=1)
        shared = " to share it" if waiter.mode == "shared" else ""
        yield key, printable(waiter.task_id), Text.assemble(f"waiting{shared}, position {position}, due ", due)
        key = Text()
