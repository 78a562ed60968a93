"""The stack on this machine: brought up as one thing, and gone as one thing."""

from __future__ import annotations

import os
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from local import deployment, emulator
from local.emulator import lambda_processes
from local.ready_file import Ready

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from local.deployment import Deployment
    from local.emulator import Emulator
    from local.terminal import Display


@dataclass(frozen=True, slots=True)
class Stack:
    """The deployed stack and the emulator it runs in."""

    emulator: Emulator
    deployment: Deployment

    @property
    def ready(self) -> Ready:
        """What others need to know to use it."""
        return Ready(
            self.deployment.api_url,
            self.emulator.endpoint_url,
            os.getpid(),
            console_url=f"{self.deployment.api_url}/console/index.html",
            websocket_url=self.deployment.watch_url,
        )


@contextmanager
def running(display: Display, port: int | None = None, data_dir: Path | None = None) -> Iterator[Stack]:
    """Start the embedded AWS and deploy to it; both are gone when the context ends."""
    with ExitStack() as context:
        with display.step("Starting the embedded AWS") as report:
            started = context.enter_context(emulator.running(port, data_dir))
            report(started.endpoint_url)
        with display.step("Deploying the stack") as report:
            deployed = deployment.deploy(started, report)
            report(f"{deployed.resources} resources")
        with display.step("Starting the workers") as report:
            names = (deployed.outputs[f"{name}FunctionName"] for name in ("Worker", "Egress", "Topology"))
            count = lambda_processes.warm_up(started, *names)
            report(f"{count} processes")
        yield Stack(started, deployed)
