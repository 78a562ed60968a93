"""Errors of requests about groups."""

from __future__ import annotations

from duetime.domain.errors import RequestError


class GroupNotFound(RequestError):
    """The group does not exist, or belongs to another owner."""

    def __init__(self, group_id: str) -> None:
        super().__init__(f"there is no group {group_id!r}")


class GroupClosed(RequestError):
    """The group is closed: no task can join, and it cannot be closed in another way."""

    def __init__(self, group_id: str, reason: str = "no task can join it") -> None:
        super().__init__(f"the group {group_id!r} is closed: {reason}")
