"""Invariants of handlers' steps under all faults: a step has one value for all attempts, and does its work once."""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING

from duetime.domain.times import SECOND, Millis

if TYPE_CHECKING:
    from duetime.handlers import Context
    from tests.simulation.fault_simulation import FaultSimulation

_NAMES = ("charge", "ship", "mail")


class StepWatching:
    """Lets handlers execute steps, and watches the steps.

    Attributes:
        share: the fraction of handler tasks that have steps.
        returned: the value that was returned first and the time of this return, by task and step.
        repeated: how often an attempt got the value that another attempt had stored.
    """

    def __init__(self, account: FaultSimulation) -> None:
        self._account = account
        self.share = 0.1
        self.returned: dict[tuple[str, str], tuple[int, Millis]] = {}
        self.repeated = 0

    def do(self, context: Context) -> None:
        """Execute the steps of a task's `run`, drawn separately so that a seed's other draws stay the same."""
        apart = Random(f"{self._account.seed} {context.task_id} steps")  # noqa: S311 - repeatable
        if apart.random() >= self.share:
            return
        began = self._account.time.now()
        for name in _NAMES[: apart.randint(1, len(_NAMES))]:
            value = context.step(name, self._work, context, name, began)
            first, _ = self.returned.setdefault((context.task_id, name), (value, self._account.time.now()))
            self._account.watching.check(value == first, f"the step {name} of {context.task_id} has two values")
            self.repeated += value != context.fence

    def _work(self, context: Context, name: str, began: Millis) -> int:
        _, returned_at = self.returned.get((context.task_id, name), (0, began))
        # An attempt that executes a step while another attempt stores the step's value may repeat the work.
        self._account.watching.check(returned_at >= began, f"the step {name} of {context.task_id} is done again")
        key = f"{context.task_id}:{name}"
        self._account.watching.check(context.idempotency_key == key, f"the step {name} has another key than {key}")
        self._account.take(Random(f"{key} {context.fence}").choice([0, 100, 2 * SECOND]))  # noqa: S311 - repeatable
        return context.fence
