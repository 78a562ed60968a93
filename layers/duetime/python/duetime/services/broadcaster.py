"""Tells each consumer of a batch of changes, whatever becomes of the other consumers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.tracebacks import places_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.domain.change_events import ChangeBatch
    from duetime.ports.change_consumers import ChangeConsumer
    from duetime.ports.runtime import Telemetry


class BatchNotCounted(RuntimeError):
    """A consumer whose figures must be right could not take a batch: the stream must deliver it again."""

    def __init__(self, names: Sequence[str]) -> None:
        super().__init__(f"the batch must be delivered again to: {', '.join(names)}")


class Broadcaster:
    """Tells every consumer of every batch.

    Args:
        exact: consumers whose figures must be right: if one fails, the batch is delivered again. They tell apart what
            they have taken already.
        best_effort: consumers that lose what they fail to take. They get a batch again that is delivered again.
        telemetry: what their failures are counted and logged with.
    """

    def __init__(
        self, exact: Sequence[ChangeConsumer], best_effort: Sequence[ChangeConsumer], telemetry: Telemetry
    ) -> None:
        self._exact = exact
        self._best_effort = best_effort
        self._telemetry = telemetry

    def broadcast(self, changes: ChangeBatch) -> None:
        """Tell everybody of a batch.

        Raises:
            BatchNotCounted: the batch must be delivered again.
        """
        if not changes.tasks and not changes.schedules:
            return
        for consumer in self._best_effort:
            self._told(consumer, changes)
        if failed := [consumer.name for consumer in self._exact if not self._told(consumer, changes)]:
            raise BatchNotCounted(failed)

    def _told(self, consumer: ChangeConsumer, changes: ChangeBatch) -> bool:
        try:
            consumer.consume(changes)
        except Exception as error:  # noqa: BLE001 - one consumer's defect must not keep the batch from the others
            self._telemetry.count("broadcast_failures")
            self._telemetry.note("changes could not be told", consumer=consumer.name, error=places_of(error))
            return False
        return True
