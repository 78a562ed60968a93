"""A deployed stack whose embedded AWS can be stopped and started again with its data."""

from __future__ import annotations

import time
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from duetime_local import emulator, stack
from duetime_local.stack import Stack

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duetime_local.terminal import Display


class Restartable:
    """A running stack that can be restarted. The embedded AWS saves its data only if it is stopped gracefully.

    Even then, all workers die at once while they process tasks.
    """

    def __init__(self, over: Stack, life: ExitStack, data: Path) -> None:
        self.over = over
        self._life = life
        self._data = data

    def restart(self) -> float:
        """Stop the embedded AWS, start it again at the same address, and return for how many seconds it was stopped."""
        began = time.monotonic()
        self._life.close()
        started = self._life.enter_context(emulator.running(self.over.emulator.port, self._data))
        self.over = Stack(started, self.over.deployment, self.over.handlers)
        return time.monotonic() - began


@contextmanager
def restartable(display: Display) -> Iterator[Restartable]:
    """A separate stack that keeps its data; the stack and its data are removed when the context ends."""
    with TemporaryDirectory() as folder, ExitStack() as life:
        yield Restartable(life.enter_context(stack.running(display, 0, Path(folder))), life, Path(folder))
