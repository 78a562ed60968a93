"""`duetime dispatch`: when the trigger last ran, and how long the queues are."""

from rich.text import Text

from duetime_client.commands.clock import Clock
from duetime_client.commands.command_help import examples
from duetime_client.commands.connection import Call
from duetime_client.commands.formatting import timed
from duetime_client.commands.output_streams import console
from duetime_client.commands.tables import Column, table_of
from duetime_client.dispatch_status import DispatchStatus, Queue, ShardGroup


@examples("duetime dispatch")
def dispatch(call: Call) -> None:
    """Show when the trigger last ran, and how long the queues are; for operators."""
    with call.client() as client:
        found = client.dispatch.get_status()
    call.show(found, _show)


def _show(found: DispatchStatus, clock: Clock) -> None:
    if found.last_tick_at is None or found.dispatched_until is None:
        console().print("the trigger has not run yet", style="yellow")
    else:
        now = clock.now()
        console().print(Text.assemble("the trigger last ran ", timed(found.last_tick_at, clock, now)))
        console().print(Text.assemble("dispatched until ", timed(found.dispatched_until, clock, now)))
    columns: list[Column[Queue]] = [
        Column("queue", lambda each: each.priority or f"type {each.pulled_type}", wraps=True),
        Column("waiting", lambda each: str(each.waiting), right=True),
        Column("delayed", lambda each: str(each.delayed), right=True),
        Column("in flight", lambda each: str(each.in_flight), right=True),
    ]
    console().print(table_of(found.queues, columns))
    groups: list[Column[ShardGroup]] = [
        Column("shards", lambda each: f"{each.first_shard}-{each.last_shard}"),
        Column("read by", lambda each: each.read_by or "nobody yet", wraps=True),
        Column("epoch", lambda each: str(each.epoch), right=True),
        Column("dispatched until", lambda each: _until(each, clock)),
    ]
    console().print(table_of(found.groups, groups))


def _until(group: ShardGroup, clock: Clock) -> Text:
    return Text("") if group.dispatched_until is None else timed(group.dispatched_until, clock, clock.now())
