"""`duetime worker run`: a pull worker, with a line of output for each event."""

from threading import Lock
from typing import Annotated

import typer
from rich.text import Text

from duetime_client.commands.clock import Clock
from duetime_client.commands.command_help import examples
from duetime_client.commands.connection import SilentCall, object_at
from duetime_client.commands.option_bundles import CommandGroup
from duetime_client.commands.output_streams import console, printable
from duetime_client.worker import Worker
from duetime_client.worker_events import WorkerEvent

app = CommandGroup(help="Run a pull worker on this machine.", no_args_is_help=True)

_STYLES = {
    "leased": "cyan",
    "succeeded": "green",
    "waiting": "yellow",
    "failed": "red",
    "lost": "bold red",
    "unreachable": "yellow",
    "stopping": "bold",
}
_WORDS = {"leased": "started", "waiting": "failed, will be retried", "unreachable": "no response, retrying"}
"""Words for some of the worker's events."""


@app.callback()
def root() -> None:
    """Run a pull worker on this machine."""


@app.command()
@examples("duetime worker run jobs:worker --concurrency 4")
def run(
    call: SilentCall,
    where: Annotated[
        str, typer.Argument(metavar="MODULE:WORKER", help="The module to import and the name of its `Worker`.")
    ],
    *,
    concurrency: Annotated[
        int | None,
        typer.Option(min=1, metavar="N", help="How many tasks run at a time; overrides the worker's own setting."),
    ] = None,
    stop_seconds: Annotated[
        float | None,
        typer.Option(min=0, metavar="SECONDS", help="How long running tasks may take after a stop signal; default: 9."),
    ] = None,
) -> None:
    """Lease and run tasks until SIGTERM or Ctrl-C.

    Running tasks then have `--stop-seconds` to end, and are released after that. A second signal exits at once.
    """
    worker = worker_at(where)
    if stop_seconds is not None:
        worker.stop_seconds = stop_seconds
    if concurrency is not None:
        worker = worker.with_concurrency(concurrency)
    worker.on_event = EventPrinter(call.clock)
    with call.client() as client:
        line = f"worker {worker.name}: polling {', '.join(worker.types)}, concurrency {worker.concurrency}"
        console(stderr=True).print(printable(line), soft_wrap=True)
        worker.run(client)


def worker_at(where: str) -> Worker:
    """Import the worker given as `module:name`; the module may be in the current directory."""
    found = object_at(where, "MODULE:WORKER, such as jobs:worker", is_local=True)
    if not isinstance(found, Worker):
        raise typer.BadParameter(f"{where!r} is a {type(found).__name__}, not a Worker")
    return found


class EventPrinter:
    """Prints a line for each event of the worker; a line never contains a payload, a result or a handler's error."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._console = console(stderr=True)
        self._lock = Lock()

    def __call__(self, event: WorkerEvent) -> None:
        """Print one line."""
        clock = self._clock
        at = clock.local(clock.now()).strftime("%H:%M:%S")
        line = Text.assemble((at, "dim"), " ", (_WORDS.get(event.what, event.what), _STYLES.get(event.what, "")))
        if event.task_id:
            line.append_text(printable(f" {event.type} {event.task_id}"))
            line.append(f" attempt {event.attempt}", "dim")
        if event.seconds:
            line.append(f" {'in' if event.what == 'unreachable' else 'after'} {event.seconds:.1f} s", "dim")
        if event.why:
            line.append_text(printable(f": {event.why}"))
        with self._lock:
            self._console.print(line, soft_wrap=True)
