"""Cancelling and changing many tasks by a filter, piece by piece."""

from __future__ import annotations

from collections.abc import Mapping  # noqa: TC003 - pydantic reads the annotations when the class is made
from typing import TYPE_CHECKING, Unpack

from pydantic import Field

from duetime_client.fields import SweepOptions, body_of
from duetime_client.locks import read
from duetime_client.problems import document_of
from duetime_client.steering import TASKS
from duetime_client.task import Answered

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duetime_client.fields import DeadLetterFilter, SweepFilter, TaskFields
    from duetime_client.transport import Transport


class Swept(Answered):
    """What one piece came to: tasks that were looked at, that were meant, and of those changed or refused."""

    examined: int = 0
    matched: int = 0
    changed: int = 0
    refused: Mapping[str, int] = Field(default_factory=dict)
    next_token: str | None = None


class Sweeps:
    """The part of the client that does something with many tasks at once."""

    _transport: Transport

    def cancel_tasks(
        self,
        wanted: SweepFilter,
        *,
        force: bool = False,
        next_token: str | None = None,
        **options: Unpack[SweepOptions],
    ) -> Iterator[Swept]:
        """Cancel every task that a filter means, piece by piece; with `force`, ask those that run to stop.

        Nothing happens until the pieces are asked for. Whoever stops in between goes on with `next_token` of the last
        piece. An empty filter needs `all=True`.
        """
        return self._sweep(f"{TASKS}/cancel", {**sweep_body(wanted, options), "force": force}, next_token)

    def change_tasks(
        self,
        wanted: SweepFilter,
        changes: TaskFields,
        *,
        next_token: str | None = None,
        **options: Unpack[SweepOptions],
    ) -> Iterator[Swept]:
        """Change every task that a filter means and that has not started, piece by piece, as `cancel_tasks` goes."""
        return self._sweep(f"{TASKS}/change", {**sweep_body(wanted, options), "change": body_of(changes)}, next_token)

    def _sweep(self, path: str, body: dict[str, object], token: str | None) -> Iterator[Swept]:
        while True:
            asked = {**body, "next_token": token} if token else body
            # Doing a piece again does no harm: it may be sent again.
            response = self._transport.request("POST", path, body=asked, repeatable=True)
            swept = read(Swept, response, document_of(response))
            yield swept
            token = swept.next_token
            if token is None:
                return


def sweep_body(wanted: SweepFilter | DeadLetterFilter, options: SweepOptions) -> dict[str, object]:
    """What every request of a sweep says."""
    return {"filter": body_of(wanted), **options}
