"""Encodes and decodes step results and checkpoints for a pull worker's handlers; imported on first use."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from duetime_client.attempt_errors import CheckpointInvalid, LeaseLost, StepInvalid
from duetime_common.limits import MAX_CHECKPOINT_BYTES
from duetime_common.payload_codecs import decrypted_json
from duetime_common.payload_models import plain
from duetime_common.steps import RUN, Steps

if TYPE_CHECKING:
    from duetime_common.steps import StepKeeper


def steps_of(task_id: str, keeper: StepKeeper) -> Steps:
    """The steps of an attempt, stored through `keeper`."""
    return Steps(task_id, RUN, keeper, encode=encoded, decode=_readable, invalid=StepInvalid, lost=_lost)


def encoded(value: object) -> bytes:
    """Encode a value as JSON in UTF-8; a dataclass or pydantic model becomes an object.

    Raises:
        ValueError: the value is not JSON.
    """
    try:
        text = json.dumps(plain(value), allow_nan=False, ensure_ascii=False, separators=(",", ":"))
        json.loads(text, object_pairs_hook=_checked)
        return text.encode()
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(str(error)) from None


def encoded_checkpoint(value: object) -> bytes:
    """Encode a checkpoint.

    Raises:
        CheckpointInvalid: the checkpoint is not JSON or is too large.
    """
    try:
        data = encoded(value)
    except ValueError as error:
        raise CheckpointInvalid(f"the checkpoint is not JSON: {error}") from None
    if len(data) > MAX_CHECKPOINT_BYTES:
        raise CheckpointInvalid(f"the checkpoint has {len(data)} bytes; {MAX_CHECKPOINT_BYTES} are allowed")
    return data


def _readable(stored: bytes) -> bytes:
    """Return a stored step result, which the client has already decrypted.

    Raises:
        CodecMissing: The result is still encrypted, because the client has no codec.
    """
    return decrypted_json(None, stored)


def _checked(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key appears more than once")
    return found


def _lost() -> LeaseLost:
    return LeaseLost("the lease is over")
