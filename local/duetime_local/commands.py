"""The commands of `duetime local`, which run the complete stack on this machine."""

from __future__ import annotations

import signal
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from duetime_cdk.errors import NotDeployable
from duetime_cdk.source_folders import project_folder
from duetime_client import Client, ClientError
from duetime_client.commands import logs as attempt_logs
from duetime_client.commands.clock import Clock
from duetime_client.commands.command_help import examples
from duetime_client.commands.connection import Codec, Deployment
from duetime_client.commands.contexts import READY_FILE_VARIABLE
from duetime_client.commands.document_output import AsJson  # noqa: TC001 - typer reads it
from duetime_client.commands.option_bundles import CommandGroup
from duetime_client.logs import LogFilter
from duetime_local import demo_showcase, demo_workflow, stack
from duetime_local import ready_file as ready
from duetime_local.cloud_assembly import ToolFailed, ToolNotInstalled
from duetime_local.demo import Demo, TasksRejected
from duetime_local.deployment import StackFailed
from duetime_local.emulator import EmulatorFailed, EmulatorNotInstalled
from duetime_local.logs import reader_at
from duetime_local.project import ExampleMissing, is_checkout
from duetime_local.terminal import Display

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duetime_local.demo_report import Figures
    from duetime_local.ready_file import Ready
    from duetime_local.stack import Stack

app = CommandGroup(no_args_is_help=True, help="Run the complete stack on this machine in an embedded AWS.")

KEPT = ".duetime/data"
"""The folder for the stack's data, relative to the project."""
INTERRUPTED = 128 + signal.SIGINT
"""The exit code after an interrupt, as is conventional in shells."""
EXPECTED = (
    ready.AlreadyUp,
    EmulatorFailed,
    EmulatorNotInstalled,
    ExampleMissing,
    NotDeployable,
    StackFailed,
    ToolFailed,
    ToolNotInstalled,
    TasksRejected,
    ClientError,
)
"""Errors for which only the message is shown, without a traceback."""

Port = Annotated[int | None, typer.Option(min=1, max=65535, help="Port of the embedded AWS.", show_default="8750")]
DataDir = Annotated[
    Path | None,
    typer.Option(
        metavar="FOLDER",
        help="Save tasks and schedules in this folder when the stack stops, and load them at the next start.",
    ),
]
Keep = Annotated[bool, typer.Option("--keep", help=f"Same as --data-dir {KEPT}.")]
ReadyFile = Annotated[
    Path,
    typer.Option(
        envvar=READY_FILE_VARIABLE,
        metavar="FILE",
        help="JSON file with the addresses, which exists while the stack is running.",
        show_default=".duetime/local.json",
    ),
]


@app.command()
@examples("duetime local up --no-demo", "duetime local up --data-dir .duetime/data")
def up(
    *,
    port: Port = None,
    data_dir: DataDir = None,
    keep: Keep = False,
    demo: Annotated[bool, typer.Option(help="Run the demo after the start.")] = True,
    verbose: Annotated[bool, typer.Option("--verbose", help="Show the handlers' output as it is written.")] = False,
    ready_file: ReadyFile = ready.READY_FILE,
) -> None:
    """Deploy the stack to an embedded AWS, run the demo, and keep the stack running until Ctrl-C."""
    began_ms = _now_ms()
    display = Display()
    kept = kept_at(data_dir, keep=keep)
    with interruptible(display), ExitStack() as context:
        ready.reject_if_taken(ready_file)
        running = context.enter_context(stack.running(display, port, kept, workers=stack.Workers.MEANWHILE))
        context.enter_context(ready.announced(running.ready, ready_file))
        # The demo's tasks need the example handlers.
        if demo and is_checkout():
            display.note(f"\nWatch it in the console: {running.ready.console_url}")
            _run(Demo(began_ms=began_ms), running.ready.api_url, display)
            with Client(running.ready.api_url) as client:
                demo_showcase.create(client)
        _stay(running, display, verbose=verbose, kept=kept, ready_file=ready_file)


@app.command("logs")
@examples("duetime local logs --follow")
def logs(  # noqa: PLR0913 - a command's options are its parameters
    context: typer.Context,
    task_id: attempt_logs.TaskId = "",
    *,
    task_type: attempt_logs.TaskType = "",
    schedule: attempt_logs.Schedule = "",
    since: attempt_logs.Since = "1h",
    follow: attempt_logs.Follow = False,
    ready_file: ReadyFile = ready.READY_FILE,
    codec: Codec = None,
    as_json: AsJson = False,
) -> None:
    """Print the log lines and output of handlers on this machine's running stack."""
    running = _running(ready_file)
    reader = reader_at(running.aws_endpoint_url, LogFilter(task_id.upper(), task_type, schedule))
    clock, loaded_codec = context.ensure_object(Clock), Deployment(codec=codec).loaded_codec()
    attempt_logs.print_logs(reader, clock, since, follow=follow, as_json=as_json, codec=loaded_codec)


def _running(ready_file: Path) -> Ready:
    running = ready.find(ready_file)
    if running is None:
        Display().error(f"no stack is running ({ready_file} does not exist): run `duetime local up`")
        raise typer.Exit(1)
    return running


@app.command("demo")
@examples("duetime local demo --count 50 --exit")
def run_demo(
    *,
    url: Annotated[
        str | None,
        typer.Option(help="API URL of a running stack; by default, the project's running stack or a new stack."),
    ] = None,
    leave: Annotated[
        bool, typer.Option("--exit", help="Stop the stack after the demo if the demo started it.")
    ] = False,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the figures to this file.")] = None,
    count: Annotated[int, typer.Option(min=1, max=300, help="Number of tasks.")] = 300,
    seconds: Annotated[float, typer.Option(min=1, max=300, help="Seconds over which the tasks are due.")] = 30.0,
    ready_file: ReadyFile = ready.READY_FILE,
) -> None:
    """Run up to 300 real CI jobs and a recorded workflow as tasks, and count the results."""
    demo = Demo(count, round(seconds * 1000), _now_ms())
    display = Display()
    with interruptible(display), ExitStack() as context:
        found = None if url else ready.find(ready_file)
        own = None if url or found else context.enter_context(_stack_of_demo(display, ready_file))
        up = own.ready if own else found
        figures = _run(demo, up.api_url if up else url or "", display)
        if json_file is not None:
            ready.write_whole(json_file, figures.as_json())
        if own and not leave:
            _stay(own, display, ready_file=ready_file)
        raise typer.Exit(0 if figures.promises_kept else 1)


@contextmanager
def _stack_of_demo(display: Display, ready_file: Path) -> Iterator[Stack]:
    """Run a stack with the demo's handlers within the context."""
    if not is_checkout():
        raise ExampleMissing
    with (
        stack.running(display, workers=stack.Workers.MEANWHILE) as running,
        ready.announced(running.ready, ready_file),
    ):
        yield running


def _run(demo: Demo, api_url: str, display: Display) -> Figures:
    display.note(f"\n{demo.count} periodic jobs of the Kubernetes project's CI, due over {demo.spread_ms / 1000:.0f} s")
    with Client(api_url) as client:
        with display.demo() as show:
            figures = demo.run(client, show)
        display.note("A recorded workflow that assembles images of the sky, a hundred times as fast")
        with display.graph() as draw:
            figures = replace(figures, graph=demo_workflow.run(client, draw))
    display.figures(figures)
    return figures


def kept_at(data_dir: Path | None, *, keep: bool) -> Path | None:
    """Return the folder for the stack's data; `None` if the data is not kept.

    Raises:
        typer.BadParameter: both options are given.
    """
    if keep and data_dir is not None:
        raise typer.BadParameter("give either --keep or --data-dir, not both", param_hint="--keep")
    return project_folder() / KEPT if keep else data_dir


def _stay(
    running: Stack,
    display: Display,
    *,
    verbose: bool = False,
    kept: Path | None = None,
    ready_file: Path = ready.READY_FILE,
) -> None:
    """Show the stack's addresses, and then wait or show handler logs until interrupted."""
    with suppress(KeyboardInterrupt):
        display.addresses(running.ready, running.types, kept, ready_file)
        if verbose:
            reader = reader_at(running.emulator.endpoint_url, LogFilter())
            attempt_logs.print_logs(reader, Clock(), "1s", follow=True)
            return
        while True:
            signal.pause()


@contextmanager
def interruptible(display: Display) -> Iterator[None]:
    """Treat SIGTERM and SIGHUP like Ctrl-C, and show only the message of expected errors."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _interrupt)
    try:
        yield
    except KeyboardInterrupt:
        display.note("Stopped.")
        raise typer.Exit(INTERRUPTED) from None
    except EXPECTED as error:
        display.error(str(error))
        raise typer.Exit(1) from None


def _interrupt(*_: object) -> None:
    raise KeyboardInterrupt


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
