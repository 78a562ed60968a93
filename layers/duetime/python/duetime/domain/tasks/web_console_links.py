"""Addresses of the console's pages, for people who are told of a task elsewhere."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.domain.tasks.task import Task


@dataclass(frozen=True, slots=True)
class ConsolePages:
    """The pages of a deployment's console.

    Attributes:
        url: the address of the console; empty if the deployment serves none.
    """

    url: str = ""

    def link(self, task: Task) -> Mapping[str, str]:
        """The address of a task's page, as `console_url`; nothing without a console."""
        return {"console_url": f"{self.url}#/tasks/{task.id}"} if self.url else {}
