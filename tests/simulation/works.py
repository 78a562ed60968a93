"""The handlers in a simulation, registered in the same way as users' handlers.

The account determines their behavior.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime.handlers import Batch, handler

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.handlers import BatchItem, Context
    from tests.simulation.fault_simulation import FaultSimulation

STAGE: list[FaultSimulation] = []
"""The simulated accounts; the last account in the list is the current account."""
LARGE = "".join(f"{number * 2654435761 % 2**32:08x}" for number in range(1_500))
"""A payload or result that is stored outside its record because it is too large even when it is compressed."""
PLAIN, UNDONE, PHASED = "simulation-plain", "simulation-undone", "simulation-phased"
BATCHED = "simulation-batched"


@handler(PLAIN)
def plain(context: Context, payload: Any) -> Any:  # noqa: ANN401 - any JSON
    """A handler with only `run`."""
    return STAGE[-1].act("run", context, payload)


@handler(BATCHED, batch=Batch(max_size=3, max_wait_seconds=4))
def batched(items: Sequence[BatchItem[Any]]) -> list[Any]:
    """A batch handler with only `run`."""
    return STAGE[-1].act_together(items)


@handler(UNDONE)
class Undone:
    """A handler that supports rollback."""

    def run(self, context: Context, payload: Any) -> Any:  # noqa: ANN401 - any JSON
        """Execute the phase `run`."""
        return STAGE[-1].act("run", context, payload)

    def rollback(self, context: Context, payload: Any) -> Any:  # noqa: ANN401 - any JSON
        """Execute the phase `rollback`."""
        return STAGE[-1].act("rollback", context, payload)


@handler(PHASED)
class Phased(Undone):
    """A handler with all phases."""

    def prepare(self, context: Context, payload: Any) -> Any:  # noqa: ANN401 - any JSON
        """Execute the phase `prepare`."""
        return STAGE[-1].act("prepare", context, payload)

    def clean(self, context: Context, payload: Any) -> Any:  # noqa: ANN401 - any JSON
        """Execute the phase `clean`."""
        return STAGE[-1].act("clean", context, payload)
