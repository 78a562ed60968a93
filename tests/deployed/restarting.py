"""A deployed stack whose embedded AWS can be stopped and started again, with what it holds."""

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
    """The stack, as it is now.

    The embedded AWS saves what it holds when it is stopped gracefully, and only then. All of its workers, though, die
    at once, in the middle of whatever they do.
    """

    def __init__(self, over: Stack, life: ExitStack, data: Path) -> None:
        self.over = over
        self._life = life
        self._data = data

    def restart(self) -> float:
        """Stop it and start it at the same address; how many seconds it was away."""
        began = time.monotonic()
        self._life.close()
        started = self._life.enter_context(emulator.running(self.over.emulator.port, self._data))
        self.over = Stack(started, self.over.deployment, self.over.handlers)
        return time.monotonic() - began


@contextmanager
def restartable(display: Display) -> Iterator[Restartable]:
    """A stack of its own that keeps its data; both are gone when the context ends."""
    with TemporaryDirectory() as folder, ExitStack() as life:
        yield Restartable(life.enter_context(stack.running(display, 0, Path(folder))), life, Path(folder))
