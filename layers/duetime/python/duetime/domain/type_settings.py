"""Settings by task type pattern, which say how long ended tasks are kept and which function runs a type's handler."""

from __future__ import annotations

from dataclasses import field
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from duetime.domain.wildcards import wildcard_matcher
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.domain.times import Millis


@frozen
class RetentionPolicy:
    """How long the record of an ended task is kept, in milliseconds.

    Attributes:
        default: retention for types that no pattern matches.
        by_pattern: retention by type pattern, in which `*` stands for any characters; the first matching pattern
            decides.
    """

    default: Millis
    by_pattern: Mapping[str, Millis] = field(default_factory=dict)

    def of(self, task_type: str) -> Millis:
        """How long an ended task of a type is kept."""
        kept = (kept for pattern, kept in self.by_pattern.items() if wildcard_matcher(pattern).fullmatch(task_type))
        return next(kept, self.default)

    def patterns(self, *, kept: bool) -> list[str]:
        """The patterns of types whose ended tasks are kept for some time, or are not kept at all."""
        return [pattern for pattern, each in self.by_pattern.items() if bool(each) is kept]

    @property
    def is_by_type(self) -> bool:
        """Whether the retention depends on the type."""
        return bool(self.by_pattern)

    @property
    def shortest(self) -> Millis:
        """Minimum time for which a task of any type is kept."""
        return min([self.default, *self.by_pattern.values()])

    @property
    def longest(self) -> Millis:
        """Maximum time for which a task of any type is kept."""
        return max([self.default, *self.by_pattern.values()])


@frozen
class PackagedTypes:
    """The functions that run handler packages.

    Attributes:
        functions: function names by type pattern; the first matching pattern decides.
    """

    functions: Mapping[str, str]

    def __bool__(self) -> bool:
        """Whether there are functions that run handler packages."""
        return bool(self.functions)

    def function_of(self, task_type: str) -> str | None:
        """The function that runs a type's handler; `None` if the worker runs it."""
        names = (name for pattern, name in self.functions.items() if fnmatchcase(task_type, pattern))
        return next(names, None)
