"""Checks that tasks accepted by the API exist and end."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime_common.limits import MAX_BATCH

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from duetime_client import Client

PATIENCE_SECONDS = 240.0
LOOK_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class DurabilityCheck:
    """What became of accepted tasks.

    Attributes:
        ended: number of tasks that have succeeded.
        lost: number of tasks that do not exist.
    """

    ended: int
    lost: int


def kept(client: Client, ids: Sequence[str], patience: float = PATIENCE_SECONDS) -> DurabilityCheck:
    """Wait until all of these tasks have succeeded or the time is up, and count their outcomes."""
    give_up = time.monotonic() + patience
    while True:
        states = _states(client, ids)
        found = DurabilityCheck(sum(state == "succeeded" for state in states.values()), len(ids) - len(states))
        if found.ended == len(ids) or time.monotonic() > give_up:
            return found
        time.sleep(LOOK_SECONDS)


def _states(client: Client, ids: Sequence[str]) -> Mapping[str, str]:
    chunks = (ids[first : first + MAX_BATCH] for first in range(0, len(ids), MAX_BATCH))
    return {task.id: task.state for chunk in chunks for task in client.tasks.list(ids=chunk)}
