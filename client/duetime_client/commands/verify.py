"""`duetime verify`: checks the guarantees of a deployment by running real tasks on it."""

from __future__ import annotations

import json
import signal
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from uuid import uuid4

import typer
from rich import box
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from duetime_client.commands.command_help import examples
from duetime_client.commands.connection import SilentCall  # noqa: TC001 - typer reads it
from duetime_client.commands.output_streams import console, printable
from duetime_client.commands.task_options import Yes  # noqa: TC001 - typer reads it
from duetime_client.plurals import counted
from duetime_client.verification.access_denied_logs import denied_grants
from duetime_client.verification.findings import Verdict
from duetime_client.verification.session import TAG, Session
from duetime_client.verification.verification import run
from duetime_client.verification.verification_plan import Limits, Plan

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from duetime_client.commands.clock import Clock
    from duetime_client.verification.findings import Finding
    from duetime_client.verification.verification import Progress as Done

INTERRUPTED = 128 + signal.SIGINT
"""Exit code after an interrupt, by shell convention."""
_LONG = 20
"""Minimum duration, in seconds, for a schedule of ten occurrences alongside the other tasks."""
_STYLES = {Verdict.PASSED: "green", Verdict.FAILED: "bold red", Verdict.MEASURED: "", Verdict.UNMEASURED: "yellow"}

Count = Annotated[int, typer.Option("--tasks", min=1, max=1000, help="Number of tasks, due one after the other.")]
Seconds = Annotated[float, typer.Option(min=1, max=600, help="Period in which these tasks are due.")]
Quick = Annotated[bool, typer.Option("--quick", help="Leave out the tasks that are due in five minutes.")]
PulledType = Annotated[str, typer.Option("--pulled", metavar="TYPE", help="A pulled type that no other worker leases.")]
HttpUrl = Annotated[str, typer.Option(metavar="URL", help="An endpoint to call once; it must respond to PUT with 2xx.")]
StackName = Annotated[
    str,
    typer.Option("--stack", metavar="NAME", help="The CloudFormation stack whose logs are read, such as duetime-dev."),
]
LateMs = Annotated[
    float | None, typer.Option("--late-ms", min=1, help="Allowed lateness, instead of the guaranteed limits.")
]
Patience = Annotated[float, typer.Option(min=10, help="Seconds after the due time until a task counts as lost.")]
JsonFile = Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write the report to this file.")]


@examples("duetime verify --quick", "duetime verify --tasks 500 --stack duetime-staging --yes")
def verify(  # noqa: PLR0913 - a command's options are its parameters
    call: SilentCall,
    *,
    tasks: Count = 100,
    seconds: Seconds = 60.0,
    quick: Quick = False,
    pulled: PulledType = "",
    http_url: HttpUrl = "",
    stack: StackName = "",
    late_ms: LateMs = None,
    patience: Patience = 210.0,
    yes: Yes = False,
    json_file: JsonFile = None,
) -> None:
    """Run real tasks on a deployment, and check each guarantee.

    Exit code 1 if a guarantee is violated. Open tasks are cancelled at the end, and on Ctrl-C.
    """
    plan = Plan(
        tasks=tasks,
        seconds=seconds,
        late_tasks=0 if quick else max(1, tasks // 5),
        occurrences=10 if seconds >= _LONG else 2,
        period_seconds=5 if seconds >= _LONG else 1,
        pulled_type=pulled,
        http_url=http_url,
        patience_seconds=patience,
        limits=Limits.of(late_ms),
    )
    clock = call.clock
    with call.client() as client:
        _confirm(plan, call.deployment.resolved().url or "", yes=yes)
        session = Session(client, uuid4().hex[:12], clock.now)
        began_ms = session.now_ms()
        found = _run(session, plan, clock)
    found.append(denied_grants(stack, began_ms))
    _show(found)
    if json_file is not None:
        json_file.write_text(json.dumps(_report(found, plan, session), indent=2) + "\n")
    raise typer.Exit(1 if any(each.verdict is Verdict.FAILED for each in found) else 0)


def _confirm(plan: Plan, url: str, *, yes: bool) -> None:
    text = (
        f"This runs about {plan.total} tasks on {url}, takes {counted(plan.minutes, 'minute')} or longer, and costs"
        f" at most about ${plan.dollars:.2f} at AWS's public list prices."
        " The tasks stay in lists until their retention ends."
    )
    console(stderr=True).print(printable(text), soft_wrap=True)
    if not yes:
        typer.confirm("Continue?", abort=True, err=True)


def _run(session: Session, plan: Plan, clock: Clock) -> list[Finding]:
    """Run the verification, and always clean up."""
    err = console(stderr=True)
    try:
        with _ended_by_signals(), _bars() as show:
            return run(session, plan, clock.sleep, show)
    except KeyboardInterrupt:
        err.print("Interrupted; cancelling open tasks.")
        raise typer.Exit(INTERRUPTED) from None
    finally:
        for left in session.clean_up():
            err.print(printable(f"not cleaned up: {left}"), soft_wrap=True)


@contextmanager
def _ended_by_signals() -> Iterator[None]:
    """Treat SIGTERM like Ctrl-C, where possible."""

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    try:
        before = signal.signal(signal.SIGTERM, interrupt)
    except ValueError:  # only the main thread may set a signal handler
        yield
        return
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@contextmanager
def _bars() -> Iterator[Callable[[Sequence[Done]], None]]:
    """A progress bar for each check: how many of its tasks have ended."""
    columns = (TextColumn("  {task.description}"), BarColumn(bar_width=40), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console(stderr=True)) as bars:
        of: dict[str, object] = {}

        def show(checks: Sequence[Done]) -> None:
            for check in checks:
                if check.of:
                    bar = of.setdefault(check.name, None)
                    if bar is None:
                        bar = of[check.name] = bars.add_task(check.name, total=check.of)
                    bars.update(bar, completed=check.done, total=check.of)  # type: ignore[arg-type]  # the value is a bar's id

        yield show


def _show(found: Sequence[Finding]) -> None:
    table = Table(box=box.ROUNDED, title="Guarantees and measurements", title_justify="left")
    for heading in ("guarantee", "", "measured", "limit"):
        table.add_column(heading, overflow="fold")
    for each in found:
        style = _STYLES[each.verdict]
        table.add_row(
            printable(each.guarantee),
            printable(each.verdict, style),
            printable(each.figure),
            printable(each.guaranteed),
        )
    console().print(table)


def _report(found: Sequence[Finding], plan: Plan, session: Session) -> dict[str, object]:
    return {
        "passed": all(each.verdict is not Verdict.FAILED for each in found),
        "tag": f"{TAG}:{session.run_id}",
        "plan": asdict(plan),
        "estimated_dollars": plan.dollars,
        "findings": [asdict(each) for each in found],
    }
