"""Errors of requests for a topology definition."""

from __future__ import annotations

from duetime.domain.errors import RequestError


class DefinitionNotFound(RequestError):
    """The definition does not exist, belongs to another owner, or does not have this version."""

    def __init__(self, name: str, version: int | None = None) -> None:
        which = f"topology definition {name!r}" if version is None else f"version {version} of the definition {name!r}"
        super().__init__(f"there is no {which}")


class DefinitionExists(RequestError):
    """A definition with this name already exists, and the request must not replace one."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the topology definition {name!r} already exists")


class DefinitionVersionMismatch(RequestError):
    """The definition has changed since the version that the request names."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the topology definition {name!r} is not at this version")


class DefinitionUsed(RequestError):
    """The definition cannot be deleted while a schedule runs it."""

    def __init__(self, name: str, schedule: str) -> None:
        super().__init__(f"the schedule {schedule!r} runs the topology definition {name!r}")
