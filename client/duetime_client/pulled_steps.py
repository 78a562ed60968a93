"""Steps and saved checkpoints of handlers in a pull worker; imported by the first handler that uses them."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from duetime_client.errors import Conflict, NotFound
from duetime_client.run_context import CheckpointInvalid, LeaseLost, StepInvalid
from duetime_common.limits import MAX_CHECKPOINT_BYTES
from duetime_common.payload_models import plain
from duetime_common.steps import RUN, Steps

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime_client.client import Client
    from duetime_client.run_context import Context
    from duetime_common.steps import StepKeeper

    Millis = int


class LeasedSteps:
    """`duetime_common.steps.StepKeeper` over the API of leases."""

    def __init__(self, client: Client, lease: str, context: Context) -> None:
        self._client = client
        self._lease = lease
        self._context = context

    def load(self) -> Mapping[str, bytes]:
        """The stored results by step name."""
        # No attempt was before the first one.
        return {} if self._context.fence == 1 else self.load_run()

    def load_run(self) -> Mapping[str, bytes]:
        """The stored results by step name, including those of this attempt."""
        try:
            steps = self._client.leases.list_steps(self._lease)
        except (Conflict, NotFound):
            raise LeaseLost("the lease is over") from None
        return {name: json.dumps(result).encode() for name, result in steps.items()}

    def begin(self) -> Millis | None:
        """The time at which a step begins; `None` if the lease is lost."""
        return None if self._context.lost else _now()

    def keep(self, name: str, result: bytes, began: Millis) -> bytes:
        """Store a result, and return the stored one."""
        try:
            stored = self._client.leases.put_step(self._lease, name, json.loads(result), duration_ms=_now() - began)
        except (Conflict, NotFound):
            raise LeaseLost("the lease is over") from None
        return json.dumps(stored).encode()


def steps_of(task_id: str, keeper: StepKeeper) -> Steps:
    """The steps of an attempt."""
    return Steps(task_id, RUN, keeper, encode=encoded, invalid=StepInvalid, lost=_lost)


def encoded(value: object) -> bytes:
    """Encode a value as JSON in UTF-8; a dataclass or pydantic model becomes an object.

    Raises:
        ValueError: it is not JSON.
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
        CheckpointInvalid: it is not JSON, or too large.
    """
    try:
        data = encoded(value)
    except ValueError as error:
        raise CheckpointInvalid(f"the checkpoint is not JSON: {error}") from None
    if len(data) > MAX_CHECKPOINT_BYTES:
        raise CheckpointInvalid(f"the checkpoint has {len(data)} bytes; {MAX_CHECKPOINT_BYTES} are allowed")
    return data


def _checked(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a key appears more than once")
    return found


def _lost() -> LeaseLost:
    return LeaseLost("the lease is over")


def _now() -> Millis:
    return round(time.monotonic() * 1_000)
