"""Reads long lists, shows progress, and shows partial results after Ctrl-C."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Protocol, TypeVar

import typer

from duetime_client.commands.formatting import localized
from duetime_client.commands.output_streams import console, show_json
from duetime_client.commands.times import short_moment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from datetime import datetime

    from rich.status import Status

    from duetime_client.client import Client
    from duetime_client.commands.clock import Clock
    from duetime_client.commands.connection import Call, D
    from duetime_client.commands.task_options import LimitOptions
    from duetime_client.session import PageRead

T = TypeVar("T")
D_contra = TypeVar("D_contra", contravariant=True)
_STOPPED = 130
"""Exit code after Ctrl-C, by shell convention."""


class View(Protocol[D_contra]):
    """Prints the entries of a list, and says whether there are more entries."""

    def __call__(self, entries: Sequence[D_contra], clock: Clock, /, *, more: bool) -> None: ...  # noqa: D102 - see above


class ListReader:
    """Reads a list whose pages may be empty and still have a next page.

    On a terminal, progress is shown. Ctrl-C stops reading; the entries found so far are shown and marked as incomplete.
    """

    def __init__(self, client: Client, clock: Clock, what: str = "tasks", *, as_json: bool = False) -> None:
        self._client = client
        self._clock = clock
        self._what = what
        # A program would mistake a partial array for the complete list.
        self._keeps_part = not as_json
        self._examined = 0
        self._examined_to: datetime | None = None
        self._status: Status | None = None
        self.is_stopped = False

    def entries(self, listed: Iterator[T]) -> Iterator[T]:
        """The entries as they are read; fewer if Ctrl-C ends the reading."""
        listeners = self._client.page_listeners
        listeners.append(self._notice)
        try:
            yield from listed
        except KeyboardInterrupt:
            if not self._keeps_part:
                raise
            self.is_stopped = True
        finally:
            listeners.remove(self._notice)
            if self._status is not None:
                self._status.stop()

    def first(self, listed: Iterator[T], most: int | None) -> list[T]:
        """The first entries; all entries without a limit."""
        return list(islice(self.entries(listed), most))

    def show(self, found: Sequence[object], show: Callable[[], None]) -> None:
        """Show the entries found, and how far the list was read if reading was interrupted.

        Raises:
            typer.Exit: Ctrl-C ended the reading; code 130.
        """
        if found or not self.is_stopped:
            show()
        if self.is_stopped:
            begin = "stopped" if found else "none found so far: stopped"
            console(stderr=True).print(f"{begin} after {self._progress()}; there may be more", style="yellow")
            raise typer.Exit(_STOPPED)

    def _notice(self, page: PageRead) -> None:
        self._examined += page.examined
        self._examined_to = page.examined_to
        err = console(stderr=True)
        if not page.has_more or not err.is_terminal:
            return
        text = f"looked at {self._progress()}; Ctrl-C stops"
        if self._status is None:
            self._status = err.status(text)
            self._status.start()
        else:
            self._status.update(text)

    def _progress(self) -> str:
        number = f"{self._examined:,} {self._what}"
        if self._examined_to is None:
            return number
        reached = short_moment(localized(self._examined_to, self._clock), self._clock.local(self._clock.now()))
        return f"{number}, up to {reached}"


def show_list(
    call: Call, client: Client, listed: Iterator[D], limits: LimitOptions, view: View[D], what: str = "tasks"
) -> None:
    """Read a list up to its limit, and print its documents as one array, or a view of the entries.

    Args:
        call: the call of the command.
        client: the client that reads the list.
        listed: the entries.
        limits: how many entries to show.
        view: prints the entries.
        what: the name of the entries for the progress, such as `tasks`.
    """
    reading = ListReader(client, call.clock, what, as_json=call.as_json)
    found = reading.first(listed, limits.wanted)
    shown = found if limits.everything else found[: limits.limit]
    if call.as_json:
        show_json([each.document for each in shown])
    else:
        reading.show(shown, lambda: view(shown, call.clock, more=len(found) > len(shown)))
