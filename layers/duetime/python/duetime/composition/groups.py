"""Composes the management of groups."""

from __future__ import annotations

from functools import cached_property

from duetime.composition import Part
from duetime.composition.core import CoreServices
from duetime.composition.tasks import TaskServices
from duetime.services.group_admin import GroupManager
from duetime.services.groups import GroupMembers


class GroupServices(Part):
    """Shows and closes groups."""

    @cached_property
    def manager(self) -> GroupManager:
        """Shows and closes groups."""
        core = self.part(CoreServices)
        members = GroupMembers(core.stores, core.enqueuer, self.runtime)
        return GroupManager(core.stores, members, self.part(TaskServices).creator, core.long_polls, self.runtime)
