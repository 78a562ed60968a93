"""Stores the steps of a pull worker's handlers through the API; imported when a handler first uses steps."""

from __future__ import annotations

import json
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from duetime_client.attempt_errors import LeaseLost, StepInvalid, Unavailable
from duetime_client.errors import ApiError, Conflict, NotFound, RateLimited, Unreachable
from duetime_client.retries import PASSING

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from duetime_client.client import Client
    from duetime_client.run_context import Context

    Millis = int


class LeasedSteps:
    """A `duetime_common.steps.StepKeeper` that stores steps through the API's lease operations."""

    def __init__(self, client: Client, lease: str, context: Context) -> None:
        self._client = client
        self._lease = lease
        self._context = context

    def load(self) -> Mapping[str, bytes]:
        """The stored results by step name."""
        # The first attempt has no earlier results.
        return {} if self._context.fence == 1 else self.load_run()

    def load_run(self) -> Mapping[str, bytes]:
        """The stored results by step name, including the results of this attempt."""
        with stored():
            steps = self._client.leases.list_steps(self._lease)
        return {name: json.dumps(result).encode() for name, result in steps.items()}

    def begin(self) -> Millis | None:
        """Return the current time as the step's start; `None` if the lease is lost."""
        return None if self._context.lost else _now()

    def keep(self, name: str, result: bytes, began: Millis) -> bytes:
        """Store a result, and return the stored result, which may be another attempt's."""
        with stored():
            found = self._client.leases.put_step(self._lease, name, json.loads(result), duration_ms=_now() - began)
        return json.dumps(found).encode()


@contextmanager
def stored(invalid: type[ValueError] = StepInvalid) -> Iterator[None]:
    """Convert API errors to the errors that handlers expect.

    Args:
        invalid: the error for a value that the API rejects.

    Raises:
        LeaseLost: the lease is over.
        Unavailable: the API does not respond, even after the client's own retries.
        ValueError: `invalid`, because the API rejects the value.
    """
    try:
        yield
    except (Conflict, NotFound):
        raise LeaseLost("the lease is over") from None
    except ApiError as error:
        if isinstance(error, RateLimited) or error.status in PASSING:
            raise Unavailable(str(error)) from error
        # The API may enforce limits that this client does not know.
        raise invalid(f"the API rejected the value: {error}") from error
    except Unreachable as error:
        raise Unavailable(str(error)) from error


def _now() -> Millis:
    return round(time.monotonic() * 1_000)
