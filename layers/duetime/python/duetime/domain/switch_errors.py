"""Why a request on switches is refused."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.errors import RequestError

if TYPE_CHECKING:
    from duetime.domain.switches import SwitchKey


class SwitchNotFound(RequestError):
    """There is no such switch: nothing is stopped or capped by it."""

    def __init__(self, key: SwitchKey) -> None:
        super().__init__(f"there is no switch for {key}")
        self.key = key


class SwitchesFull(RequestError):
    """There are as many switches as there may be."""

    def __init__(self, most: int) -> None:
        super().__init__(f"there are {most} switches already; remove one first")
