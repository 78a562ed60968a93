"""Steps and saved checkpoints of handlers in a worker function; imported by the first handler that uses them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.json_values import ValueRefused
from duetime.domain.limits import MAX_CHECKPOINT_BYTES
from duetime.handlers.errors import CheckpointInvalid, LeaseLost, StepInvalid
from duetime.handlers.payload_codec import encoded
from duetime_common.steps import MemorySteps, Steps

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime_common.steps import StepKeeper


def steps_of(task_id: str, phase: str, keeper: Callable[[], StepKeeper] | None) -> Steps:
    """The steps of an attempt's phase; without a keeper they are in memory."""
    kept = MemorySteps({}) if keeper is None else keeper()
    return Steps(task_id, phase, kept, encode=encoded, invalid=StepInvalid, lost=LeaseLost)


def save_checkpoint(checkpoint: object, phase: str, writer: Callable[[bytes], bool] | None) -> None:
    """Store a checkpoint now.

    Raises:
        CheckpointInvalid: it is not JSON or too large, or the phase stores none.
        LeaseLost: the attempt has lost its lease.
    """
    if writer is None:
        raise CheckpointInvalid(f"the phase {phase!r} cannot save a checkpoint")
    try:
        data = encoded(checkpoint)
    except ValueRefused as error:
        raise CheckpointInvalid(f"the checkpoint is not JSON: {error}") from None
    if len(data) > MAX_CHECKPOINT_BYTES:
        raise CheckpointInvalid(f"the checkpoint has {len(data)} bytes; {MAX_CHECKPOINT_BYTES} are allowed")
    if not writer(data):
        raise LeaseLost
