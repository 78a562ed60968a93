"""The handlers of a simulation, as a user registers them; their account decides how they behave."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime.handlers import Batch, handler

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.handlers import BatchItem, Context
    from tests.simulation.fault_simulation import FaultSimulation

STAGE: list[FaultSimulation] = []
"""The account that is being simulated, the last one in the list."""
LARGE = "".join(f"{number * 2654435761 % 2**32:08x}" for number in range(1_500))
"""A payload or result outside its record, in compressed form."""
PLAIN, UNDONE, PHASED = "simulation-plain", "simulation-undone", "simulation-phased"
BATCHED = "simulation-batched"


@handler(PLAIN)
def plain(context: Context, payload: Any) -> Any:  # noqa: ANN401 - any JSON
    """Only `run`."""
    return STAGE[-1].act("run", context, payload)


@handler(BATCHED, batch=Batch(max_size=3, max_wait_seconds=4))
def batched(items: Sequence[BatchItem[Any]]) -> list[Any]:
    """Only `run`, for several tasks."""
    return STAGE[-1].act_together(items)


@handler(UNDONE)
class Undone:
    """The undoable ones."""

    def run(self, context: Context, payload: Any) -> Any:  # noqa: ANN401 - any JSON
        """Do it."""
        return STAGE[-1].act("run", context, payload)

    def rollback(self, context: Context, payload: Any) -> Any:  # noqa: ANN401 - any JSON
        """Undo it."""
        return STAGE[-1].act("rollback", context, payload)


@handler(PHASED)
class Phased(Undone):
    """Every phase."""

    def prepare(self, context: Context, payload: Any) -> Any:  # noqa: ANN401 - any JSON
        """Get ready."""
        return STAGE[-1].act("prepare", context, payload)

    def clean(self, context: Context, payload: Any) -> Any:  # noqa: ANN401 - any JSON
        """Put away."""
        return STAGE[-1].act("clean", context, payload)
