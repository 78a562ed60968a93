"""Implements the command `duetime dev`, which runs the stack on this machine while the user develops handlers."""

from __future__ import annotations

import threading
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from duetime_cdk.handlers_folder import HandlersNotFound
from duetime_client.commands import logs as attempt_logs
from duetime_client.commands.clock import Clock
from duetime_client.commands.command_help import examples
from duetime_client.logs import LogFilter
from duetime_local import ready_file as ready
from duetime_local import stack
from duetime_local.commands import DataDir, Keep, Port, ReadyFile, interruptible, kept_at
from duetime_local.handler_reload import HandlerVersions, Reloader, folders, signature
from duetime_local.logs import reader_at
from duetime_local.terminal import Display

if TYPE_CHECKING:
    from duetime_local.handler_reload import Signature
    from duetime_local.stack import Stack


@examples("duetime dev", "duetime dev --keep", "duetime dev --port 8760 --ready-file .duetime/other.json")
def dev(
    *,
    port: Port = None,
    data_dir: DataDir = None,
    keep: Keep = False,
    ready_file: ReadyFile = ready.READY_FILE,
) -> None:
    """Run the stack on this machine, and reload saved handlers.

    The handlers' logs and output are shown. Ctrl-C stops the stack.
    """
    display = Display()
    kept = kept_at(data_dir, keep=keep)
    # The files are read before the stack is built, so that files saved during the build are reloaded right after it.
    saved = _saved()
    with interruptible(display), ExitStack() as context:
        ready.reject_if_taken(ready_file)
        running = context.enter_context(stack.running(display, port, kept, workers=stack.Workers.NEEDED, lenient=True))
        context.enter_context(ready.announced(running.ready, ready_file))
        display.addresses(running.ready, running.types, kept, ready_file)
        packages = " and ".join(map(str, folders()))
        display.note(f"Handlers in {packages} are reloaded when they are saved.")
        threading.Thread(target=_reload, args=(running, display, saved), daemon=True).start()
        reader = reader_at(running.ready.aws_endpoint_url, LogFilter())
        attempt_logs.print_logs(reader, Clock(), "1s", follow=True)
        # The user pressed Ctrl-C, which ends `print_logs` and must end this command, too.
        raise KeyboardInterrupt


def _saved() -> Signature:
    """Return the handlers' current files, or an empty set (which causes a reload) if the handlers are not known yet."""
    try:
        return signature(*folders())
    except HandlersNotFound:
        return frozenset()


def _reload(running: Stack, display: Display, saved: Signature) -> None:
    versions = HandlerVersions(running.emulator, running.deployment, running.handlers)
    reloader = Reloader(versions, display.reloaded, display.broken, seen=saved)
    # These errors are expected if the stack is stopped while this thread runs.
    with suppress(BotoCoreError, ClientError):
        reloader.run()
