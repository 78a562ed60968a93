"""Steps and saved checkpoints of handlers in a worker function; imported by the first handler that uses them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.json_values import ValueRefused
from duetime.domain.limits import MAX_CHECKPOINT_BYTES
from duetime.handlers.errors import CheckpointInvalid, LeaseLost, StepInvalid
from duetime.handlers.payload_codec import encoded, present_codec
from duetime_common.payload_codecs import decrypted_json, encrypted_json
from duetime_common.steps import MemorySteps, Steps

if TYPE_CHECKING:
    from collections.abc import Callable

    from duetime_common.steps import StepKeeper


def steps_of(task_id: str, phase: str, keeper: Callable[[], StepKeeper] | None) -> Steps:
    """The steps of an attempt's phase; without a keeper they are in memory."""
    kept = MemorySteps({}) if keeper is None else keeper()
    # A test reads the results in memory.
    codec = None if isinstance(kept, MemorySteps) else present_codec()
    return Steps(
        task_id,
        phase,
        kept,
        encode=lambda result: encrypted_json(codec, encoded(result)),
        decode=lambda stored: decrypted_json(codec, stored),
        invalid=StepInvalid,
        lost=LeaseLost,
    )


def save_checkpoint(checkpoint: object, phase: str, writer: Callable[[bytes], bool] | None) -> None:
    """Store a checkpoint now.

    Raises:
        CheckpointInvalid: it is not JSON or too large, or the phase stores none.
        LeaseLost: the attempt has lost its lease.
    """
    if writer is None:
        raise CheckpointInvalid(f"the phase {phase!r} cannot save a checkpoint")
    try:
        data = encrypted_json(present_codec(), encoded(checkpoint))
    except ValueRefused as error:
        raise CheckpointInvalid(f"the checkpoint is not JSON: {error}") from None
    if len(data) > MAX_CHECKPOINT_BYTES:
        raise CheckpointInvalid(f"the checkpoint has {len(data)} bytes; {MAX_CHECKPOINT_BYTES} are allowed")
    if not writer(data):
        raise LeaseLost
