"""Steps of a pull worker's handlers, stored through the API; imported by the first handler that has steps."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING

from duetime_client.attempt_errors import LeaseLost
from duetime_client.errors import Conflict, NotFound

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime_client.client import Client
    from duetime_client.run_context import Context

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


def _now() -> Millis:
    return round(time.monotonic() * 1_000)
