"""Starts and stops the stack on this machine."""

from __future__ import annotations

import os
import threading
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from botocore.exceptions import BotoCoreError, ClientError

from duetime_cdk.errors import NotDeployable
from duetime_cdk.layers.build import types_of
from duetime_local import cloud_assembly, deployment, emulator, handler_reload
from duetime_local.emulator import lambda_warm_up
from duetime_local.project import handlers_package
from duetime_local.ready_file import Ready

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from duetime_cdk.layers.build import Layer
    from duetime_local.deployment import Deployment
    from duetime_local.emulator import Emulator
    from duetime_local.terminal import Display


class Workers(Enum):
    """How many function processes a stack starts before tasks need them; each start takes a second of CPU time."""

    ALL = "all of them before the stack is used: for a measurement"
    MEANWHILE = "a few first, and the others while the stack is already in use: for a demo"
    NEEDED = "a few first, and each of the others when a task needs it: for writing handlers"


@dataclass(frozen=True, slots=True)
class Stack:
    """The deployed stack, and the emulator in which the stack runs."""

    emulator: Emulator
    deployment: Deployment
    handlers: Mapping[str, Layer]
    """The deployed layers with the user's packages; empty if the packages could not be imported."""

    @property
    def types(self) -> tuple[str, ...]:
        """The task types with a handler."""
        return types_of(self.handlers[deployment.TYPES]) if deployment.TYPES in self.handlers else ()

    @property
    def ready(self) -> Ready:
        """The content of the stack's ready file."""
        return Ready(
            self.deployment.api_url,
            self.emulator.endpoint_url,
            os.getpid(),
            console_url=f"{self.deployment.api_url}/console/index.html",
            websocket_url=self.deployment.watch_url,
        )


@contextmanager
def running(
    display: Display,
    port: int | None = None,
    data_dir: Path | None = None,
    *,
    workers: Workers = Workers.ALL,
    lenient: bool = False,
) -> Iterator[Stack]:
    """Start the embedded AWS and deploy the stack within the context; the embedded AWS stops at the context's end.

    Args:
        display: shows the progress of each step.
        port: the port of the embedded AWS.
        data_dir: folder in which the stack's data is kept.
        workers: how many function processes are started, and when.
        lenient: whether to start with the handlers in the assembly if the current handlers cannot be imported.
    """
    with ExitStack() as context:
        if emulator.is_missing():
            with display.step("Installing the embedded AWS"):
                emulator.install()
        with display.step("Starting the embedded AWS") as report:
            started = context.enter_context(emulator.running(port, data_dir))
            report(started.endpoint_url)
        with display.step("Deploying the stack") as report:
            made = cloud_assembly.synthesize(report)
            newest = _handlers(display, lenient=lenient)
            started.show_paths_of(handlers_package())
            deployed = deployment.deploy(started, made, newest)
            report(f"{deployed.resources} resources")
        with display.step("Starting the workers") as report:
            report(f"{_start_workers(started, deployed, workers)} processes")
        yield Stack(started, deployed, newest)


def _handlers(display: Display, *, lenient: bool) -> dict[str, Layer]:
    try:
        return handler_reload.built()
    except NotDeployable as broken:
        if not lenient:
            raise
        display.broken(str(broken))
        return {}


def _start_workers(started: Emulator, deployed: Deployment, workers: Workers) -> int:
    """Start function processes, and return the number of processes that have started so far."""
    names = [deployed.outputs[f"{name}FunctionName"] for name in ("Worker", "Egress", "Topology")]
    if workers is Workers.ALL:
        return lambda_warm_up.warm_up(started, *names)
    first = [deployed.outputs[f"{name}FunctionName"] for name in ("Api", "Worker")]
    lambda_warm_up.start_one(started, *first)
    if workers is Workers.MEANWHILE:
        threading.Thread(target=_start_others, args=(started, names), daemon=True).start()
    return len(first)


def _start_others(started: Emulator, names: list[str]) -> None:
    # The stack may be stopped while processes are started.
    with suppress(BotoCoreError, ClientError):
        lambda_warm_up.warm_up(started, *names)
