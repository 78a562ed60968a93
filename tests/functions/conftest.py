"""The functions over fakes of AWS, or over the embedded engine in tests of costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from duetime import composition
from tests.functions.stack import Stack

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def stack() -> Iterator[Stack]:
    """The functions over an empty AWS of fakes."""
    yield Stack.faked()
    composition.use(None)
