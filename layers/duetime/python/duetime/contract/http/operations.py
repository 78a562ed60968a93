"""All operations of the API, for the OpenAPI document, the docs and the tests."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any

from duetime.contract.http.operation import DECLARED_IN, operations_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime.contract.http.operation import Operation

OPERATIONS: Sequence[Operation[Any]] = tuple(
    operation for module in dict.fromkeys(chain(*DECLARED_IN.values())) for operation in operations_of(module)
)
