"""`duetime cost`: estimates the cost of a workload, and adds up the cost of existing tasks."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Annotated

import typer

from duetime_client.commands.command_help import examples
from duetime_client.commands.connection import Call
from duetime_client.commands.cost_views import cost_table
from duetime_client.commands.document_output import AsJson
from duetime_client.commands.list_reader import ListReader
from duetime_client.commands.option_bundles import CommandGroup
from duetime_client.commands.output_streams import console, printable, show_json
from duetime_client.commands.tables import Column, table_of
from duetime_client.commands.task_arguments import list_filter
from duetime_client.commands.task_options import DueAfter, DueBefore, ListFilterOptions, OnlyType
from duetime_client.task_cost_sums import CostKey, CostSum, sums
from duetime_common.cost_estimate import STREAM_SECONDS, CostEstimate, Workload, WorkloadError, estimate
from duetime_common.limits import MAX_PAGE
from duetime_common.prices import AS_OF, DEFAULT_REGION, PRICES, WORKER_MB

app = CommandGroup(help="Estimate what tasks will cost; add up what they have cost.", no_args_is_help=True)

Tasks = Annotated[float, typer.Option("--tasks", help="Tasks a month, spread evenly.")]


@dataclass(frozen=True)
class Mix:
    """The mix of tasks in a workload."""

    seconds: Annotated[float, typer.Option(help="How long an attempt keeps its worker busy.")] = 0.0
    together: Annotated[int, typer.Option(help="Number of tasks due at the same moment.")] = 1
    per_request: Annotated[
        int, typer.Option(help="Number of tasks per create request; 0 if schedules create the tasks.")
    ] = 1
    ahead: Annotated[
        bool, typer.Option(help="Whether tasks are created more than four minutes before they are due.")
    ] = True
    precision: Annotated[str, typer.Option(help="normal, exact or relaxed.")] = "normal"
    memory_mb: Annotated[int, typer.Option(help="Memory of the worker.")] = WORKER_MB
    retries: Annotated[float, typer.Option(help="The share of tasks with one retry, from 0 to 1.")] = 0.0
    keys: Annotated[bool, typer.Option(help="Whether requests have an idempotency key.")] = False
    heartbeats: Annotated[float, typer.Option(help="Heartbeats of each task.")] = 0.0
    extra_writes: Annotated[
        float, typer.Option(help="Additional write units per task, such as four for a unique key or two for a lock.")
    ] = 0.0
    transitions: Annotated[
        float,
        typer.Option(help="State transitions per task, if tasks are topologies: six, plus one for each last node."),
    ] = 0.0
    pulled: Annotated[bool, typer.Option("--pulled", help="Whether pull workers run the tasks.")] = False
    stream_seconds: Annotated[
        int, typer.Option(help="How long changes are collected before they are published (`broadcast_batch_seconds`).")
    ] = STREAM_SECONDS
    has_summary: Annotated[
        bool, typer.Option("--summary/--no-summary", help="Whether the deployment counts tasks.")
    ] = True
    has_lists: Annotated[
        bool, typer.Option("--lists/--no-lists", help="Whether the deployment keeps lists of tasks.")
    ] = True
    has_traces: Annotated[bool, typer.Option("--traces/--no-traces", help="Whether X-Ray tracing is on.")] = False
    region: Annotated[str, typer.Option(help=f"One of {', '.join(PRICES)}.")] = DEFAULT_REGION


@app.command("estimate")
@examples(
    "duetime cost estimate --tasks 3000000 --seconds 0.5 --together 10 --per-request 100 --region eu-west-1",
)
def estimate_cost(*, tasks: Tasks, mix: Mix, as_json: AsJson = False) -> None:
    """Estimate what a month of tasks will cost, before the tasks exist. This does not call a deployment."""
    try:
        found = estimate(Workload(tasks=tasks, **asdict(mix)))
    except WorkloadError as error:
        raise typer.BadParameter(str(error)) from error
    if as_json:
        show_json(_document(found))
    else:
        _show(found)


@app.command("sum")
@examples(
    "duetime cost sum --by type --due-after 2026-11-01T00:00 --due-before 2026-12-01T00:00",
    "duetime cost sum --by schedule",
    "duetime cost sum --by tag:team --json",
)
def sum_costs(
    call: Call,
    *,
    by: Annotated[str, typer.Option(metavar="WHAT", help="type, schedule, state or tag:KEY.")] = "type",
    task_type: OnlyType = None,
    due_after: DueAfter = None,
    due_before: DueBefore = None,
) -> None:
    """Add up what tasks have cost so far: writes and time in workers, as the API estimates them."""
    try:
        key = CostKey.of(by)
    except WorkloadError as error:
        raise typer.BadParameter(str(error), param_hint="--by") from error
    options = ListFilterOptions(task_type=task_type, due_after=due_after, due_before=due_before)
    clock = call.clock
    filters = list_filter(options, clock)
    with call.client() as client:
        reading = ListReader(client, clock, as_json=call.as_json)
        found = sums(reading.entries(client.tasks.list(page_size=MAX_PAGE, **filters)), key)
    if call.as_json:
        show_json([asdict(each) for each in found])
    else:
        reading.show(found, lambda: _show_sums(by, found))


def _show_sums(by: str, found: Sequence[CostSum]) -> None:
    columns: list[Column[CostSum]] = [
        Column(by, lambda each: printable("none", "dim") if each.name is None else each.name, wraps=True),
        Column("tasks", lambda each: f"{each.tasks:,}", right=True),
        Column("attempts", lambda each: f"{each.attempts:,}", right=True),
        Column("dollars", lambda each: f"{each.dollars:,.6f}", right=True),
        Column("a million", lambda each: f"{each.per_million:,.2f}", right=True),
    ]
    console().print(table_of(found, columns))
    total = sum(each.dollars for each in found)
    console().print(f"{total:,.6f} dollars in all for writes and worker time; see `duetime cost estimate` for the rest")


def _document(found: CostEstimate) -> dict[str, object]:
    return {
        "workload": asdict(found.workload),
        "lines": [asdict(line) for line in found.lines],
        "idle_dollars": found.idle,
        "dollars": found.dollars,
        "dollars_per_million": found.per_million,
        "prices_as_of": AS_OF,
    }


def _show(found: CostEstimate) -> None:
    table = cost_table([(line.part, line.use, line.dollars) for line in found.lines], "use a month")
    table.add_row("idle deployment", "ticks, polls of empty queues", f"{found.idle:,.2f}")
    table.add_row("a month", "", f"{found.dollars:,.2f}", style="bold")
    console().print(table)
    console().print(f"{found.per_million:,.2f} dollars per million tasks, without the idle deployment")
    console().print(
        f"By the list prices of {found.workload.region} as assumed on {AS_OF}, without free tiers. Durations are"
        " assumed, not measured. Not included: CloudWatch's alarms, metrics and dashboard, storage, and what your"
        " handlers use.",
        style="dim",
    )
