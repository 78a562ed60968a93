"""`duetime rates`: list, show, pause, resume, reset, pin, unpin."""

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
from duetime_client.commands.task_options import Reason
from duetime_client.rates import Rate, RateLimit

app = CommandGroup(
    help="See how rates are used and which tasks wait for them; pause, reset and pin rates.", no_args_is_help=True
)
_HEADINGS = ("rate", "limit", "task", "state")
Key = Annotated[str, typer.Argument(metavar="KEY", help="Key of the rate.")]


@app.command("list")
@examples("duetime rates list")
def list_rates(call: Call) -> None:
    """List the rates that were used in the last week, or are paused or pinned; with --json, as one array."""
    with call.client() as client:
        found = list(client.rates.list())
    call.show_all(found, show_rates)


@app.command()
@examples("duetime rates show crm")
def show(call: Call, key: Key) -> None:
    """Show how a rate is used, and the waiting tasks in order."""
    with call.client() as client:
        rate = client.rates.get(key)
    call.show(rate, show_one)


@app.command()
@examples("duetime rates pause crm --reason 'the CRM is down'")
def pause(call: Call, key: Key, *, reason: Reason = "") -> None:
    """Start no attempts of a rate's tasks until the rate is resumed; running attempts continue."""
    with call.client() as client:
        rate = client.rates.pause(key, reason=reason)
    _done(call, rate, "paused")


@app.command()
@examples("duetime rates resume crm")
def resume(call: Call, key: Key, *, reason: Reason = "") -> None:
    """Resume a paused rate; the first 100 waiting tasks are checked at once, and other tasks within 85 seconds."""
    with call.client() as client:
        rate = client.rates.resume(key, reason=reason)
    _done(call, rate, "resumed")


@app.command()
@examples("duetime rates reset crm")
def reset(call: Call, key: Key, *, reason: Reason = "") -> None:
    """Clear a rate's counted starts and waiting line; in one window, up to twice as many attempts can start."""
    with call.client() as client:
        rate = client.rates.reset(key, reason=reason)
    _done(call, rate, "reset")


@app.command()
@examples("duetime rates pin crm 10 --per 60")
def pin(
    call: Call,
    key: Key,
    limit: Annotated[
        int, typer.Argument(metavar="LIMIT", min=1, help="Attempts that can start in each period of --per.")
    ],
    *,
    per: Annotated[int, typer.Option("--per", metavar="SECONDS", min=1, help="The period of LIMIT.")] = 1,
    burst: Annotated[int, typer.Option(metavar="N", min=0, help="How many more attempts may start at once.")] = 0,
    reason: Reason = "",
) -> None:
    """Set a limit that replaces the limits requested by tasks."""
    with call.client() as client:
        rate = client.rates.pin(key, limit, per_seconds=per, burst=burst, reason=reason)
    _done(call, rate, "pinned")


@app.command()
@examples("duetime rates unpin crm")
def unpin(call: Call, key: Key) -> None:
    """Remove a pinned limit; the limits requested by tasks apply again."""
    with call.client() as client:
        rate = client.rates.unpin(key)
    _done(call, rate, "unpinned")


def _done(call: Call, rate: Rate, what: str) -> None:
    if not call.as_json:
        say(f"{what} the rate {rate.key}")
    call.show(rate, show_one)


def show_one(rate: Rate, clock: Clock) -> None:
    """Print one rate as a table."""
    show_rates([rate], clock)


def show_rates(rates: Iterable[Rate], clock: Clock) -> None:
    """Print rates as a table, with a row for each waiting task."""
    entries = [row for rate in rates for row in rows(rate, clock)]
    show_table(entries, [Column(name, itemgetter(index)) for index, name in enumerate(_HEADINGS)], "no rates")


def rows(rate: Rate, clock: Clock) -> Iterator[tuple[Text, Text, Text, Text]]:
    """The rows of one rate; only the first row has the rate's key and state."""
    now = clock.now()
    yield printable(rate.key), Text(_limit(rate)), Text(), _state(rate, clock)
    for position, waiter in enumerate(rate.waiters, 1):
        turn = timed(waiter.next_at, clock, now, units=1)
        what = "checked again " if rate.paused_at else "its turn "
        state = Text.assemble(f"waiting, position {position}, {what}", turn)
        yield Text(), Text(), printable(waiter.task_id), state


def _limit(rate: Rate) -> str:
    if rate.limit is None:
        return "not used yet"
    found = _often(RateLimit(limit=rate.limit, per_seconds=rate.per_seconds or 1, burst=rate.burst or 0))
    if rate.pinned is None:
        return found
    asked = f"; tasks ask for {_often(rate.asked)}" if rate.asked else ""
    return f"{found}, pinned{asked}"


def _often(rate: RateLimit) -> str:
    burst = f" + {rate.burst}" if rate.burst else ""
    return f"{rate.limit} per {rate.per_seconds} s{burst}"


def _state(rate: Rate, clock: Clock) -> Text:
    now = clock.now()
    if rate.paused_at is not None:
        return Text.assemble("paused ", timed(rate.paused_at, clock, now, units=1), style="yellow")
    if rate.available:
        return Text(f"{rate.available} can start now", "green")
    next_at = "" if rate.next_free_at is None else timed(rate.next_free_at, clock, now, units=1)
    return Text.assemble(f"{rate.waiting} waiting; a new task starts ", next_at)
