"""The store of groups and their members."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from duetime.domain.groups import Group, Member
    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.states import State
    from duetime.domain.times import Millis


class GroupStore(Protocol):
    """Groups. Each member has an item, which says whether its task has ended, and how.

    Every method raises `Unavailable` if the store does not answer.
    """

    def read(self, owner: str, group_id: str, *, consistent: bool = True) -> Group | None:
        """Read a group without its members; `None` if it does not exist."""
        ...

    def save(self, group: Group, nonce: str) -> bool:
        """Write the next version of a group; returns whether it still had the version that was read."""
        ...

    def list_after(self, owner: str, after: str, limit: int) -> Sequence[Group]:
        """An owner's groups in order of their ids, eventually consistent; fewer than `limit` only at the end."""
        ...

    def add_member(self, owner: str, group_id: str, task_id: TaskId, now: Millis) -> bool:
        """Write the item of a member that joins, or joins again before its end; returns whether it was written."""
        ...

    def note(
        self, owner: str, group_id: str, member: Member, expires_at: Millis | None, read: Member | None = None
    ) -> None:
        """Note the outcome of a member, or that it has none any more, unless a later version was noted.

        Args:
            owner: owner of the group.
            group_id: its id.
            member: the new values.
            expires_at: when the item may be removed; `None` while the task is open.
            read: the item as read, which must be unchanged; `None` if it does not matter.
        """
        ...

    def remove_member(self, owner: str, group_id: str, task_id: TaskId, read: Member | None = None) -> None:
        """Remove the item of a member; if it was read, only while it is unchanged."""
        ...

    def open_members(self, owner: str, group_id: str, limit: int, near: TaskId | None = None) -> Sequence[Member]:
        """Some open members, read consistently; none only if there is none.

        Args:
            owner: owner of the group.
            group_id: its id.
            limit: maximum number of members.
            near: a member whose partition is read first.
        """
        ...

    def counts(self, owner: str, group_id: str, most_open: int) -> tuple[Mapping[State, int], Sequence[TaskId], int]:
        """Count all members, read consistently.

        Args:
            owner: owner of the group.
            group_id: its id.
            most_open: maximum number of ids of open members.

        Returns:
            The number of ended members by state, ids of open ones, and the number of open ones.
        """
        ...

    def remove(self, owner: str, group_id: str) -> bool:
        """Remove some members of a group, and the group once none is left; returns whether it is removed."""
        ...
