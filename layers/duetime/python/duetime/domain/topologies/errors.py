"""Errors of requests for a topology definition."""

from __future__ import annotations

from duetime.domain.errors import RequestError


class DefinitionNotFound(RequestError):
    """There is no such definition, or it belongs to another owner, or it does not have this version."""

    def __init__(self, name: str, version: int | None = None) -> None:
        which = f"topology definition {name!r}" if version is None else f"version {version} of the definition {name!r}"
        super().__init__(f"there is no {which}")


class DefinitionExists(RequestError):
    """There is a definition of this name already, and the request is to replace none."""

    def __init__(self, name: str) -> None:
        super().__init__(f"there is a topology definition {name!r} already")


class DefinitionVersionMismatch(RequestError):
    """The definition has changed since the version that the request was made for."""

    def __init__(self, name: str) -> None:
        super().__init__(f"the topology definition {name!r} is not at this version")


class DefinitionUsed(RequestError):
    """A definition cannot be removed while a schedule runs it."""

    def __init__(self, name: str, schedule: str) -> None:
        super().__init__(f"the schedule {schedule!r} runs the topology definition {name!r}")
