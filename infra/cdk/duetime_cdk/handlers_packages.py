"""Settings of additional handler packages, each with its own function."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from duetime_cdk.errors import UnsafeEnvironment
from duetime_cdk.handlers_environment import HandlersEnvironment

if TYPE_CHECKING:
    from collections.abc import Iterable

    from duetime_cdk.canary import Canary

_NAME = re.compile(r"[a-z][a-z0-9]{0,19}")
_PATTERN = re.compile(r"[A-Za-z0-9_*][A-Za-z0-9_.:/*-]*")


@dataclass(frozen=True, slots=True, kw_only=True)
class HandlersPackage:
    """A package of handlers that runs in its own function.

    The function's role can access the package's logs and secrets and has the package's policies, but cannot access the
    table, the queues or other packages. The worker invokes the function for each phase of an attempt, with the task's
    data, and waits for the result.
    """

    name: str
    """Name of the package in the stack: lower-case letters and digits."""
    folder: str
    """Folder, relative to the project, with the package, its `requirements.txt` and its `grants.json`."""
    types: tuple[str, ...]
    """The types of its handlers; `*` stands for any characters: `("billing.*",)`. No other package may have handlers
    for these types."""
    package: str = ""
    """Import name of the package in that folder; empty if the folder has only one package."""
    environment: HandlersEnvironment = field(default_factory=HandlersEnvironment)
    """Environment variables, secrets, VPC, memory, layers and policies of its function."""
    reserved: int | None = None
    """Reserved concurrency of the package's function: the guaranteed and maximum number of attempts that run at once.
    Other tasks wait, which costs no attempt. `None`: the function uses the account's unreserved concurrency."""
    canary: Canary | None = None
    """Share of the attempts that a new version of the package's function gets first: `Canary(share=50, minutes=5)`.
    `None`: as set for the environment."""


def check_packages(packages: Iterable[HandlersPackage], where: str) -> None:
    """Check the packages of an environment.

    Args:
        packages: the packages.
        where: the environment, as it is named in error messages.

    Raises:
        UnsafeEnvironment: a setting is invalid, or two packages have the same name or pattern.
    """
    names: set[str] = set()
    patterns: set[str] = set()
    for each in packages:
        own = f"{where}, package of handlers {each.name!r}"
        if _NAME.fullmatch(each.name) is None:
            raise UnsafeEnvironment(f"{own}: the name must be 1 to 20 lower-case letters and digits, a letter first")
        if not each.types or any(_PATTERN.fullmatch(pattern) is None for pattern in each.types):
            raise UnsafeEnvironment(f"{own}: `types` must be a tuple of types or patterns, such as ('billing.*',)")
        if each.reserved is not None and each.reserved < 1:
            raise UnsafeEnvironment(f"{own}: `reserved` must be at least 1, not {each.reserved}")
        if each.name in names or patterns & {*each.types}:
            raise UnsafeEnvironment(f"{own}: another package has the same name or one of its patterns")
        each.environment.check(own)
        if each.canary:
            each.canary.check(own)
        names.add(each.name)
        patterns |= {*each.types}
