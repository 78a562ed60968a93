"""The setting for deployments that give new versions a share of the work first."""

from __future__ import annotations

from dataclasses import dataclass

from duetime_cdk.errors import UnsafeEnvironment

_MINUTES = 2880
"""Longest time between two shifts of a CodeDeploy deployment (Source: AWS CodeDeploy User Guide, quotas)."""
_LEAST_MINUTES = 5
"""The period of the alarm on failures; a shorter canary would end before the alarm can go off."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Canary:
    """How a deployment shifts work to new versions of functions, and when it is rolled back."""

    share: int = 10
    """Percent of the invocations that new versions get first (1 to 99)."""
    minutes: int = 10
    """Minutes until new versions get all invocations, unless an alarm goes off first (5 to 2,880). A deployment takes
    that much longer."""
    failures: int = 20
    """Percentage of a new version's attempts that must fail within five minutes to cause a rollback (1 to 100)."""

    def check(self, where: str) -> None:
        """Check the numbers.

        Args:
            where: the environment or package, as it is named in error messages.

        Raises:
            UnsafeEnvironment: a number is out of its range.
        """
        ranges = {"share": (1, 99), "minutes": (_LEAST_MINUTES, _MINUTES), "failures": (1, 100)}
        for name, (least, most) in ranges.items():
            if not least <= (value := getattr(self, name)) <= most:
                raise UnsafeEnvironment(f"{where}: `{name}` of `canary` must be {least} to {most}, not {value}")
