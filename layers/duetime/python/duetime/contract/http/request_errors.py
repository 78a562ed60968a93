"""Requests that are refused before any use case sees them, named for what happened."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MOST_FAULTS = 20
"""A problem lists no more faults than this: whoever sends thousands is not helped by reading them all."""


@dataclass(frozen=True, slots=True)
class Fault:
    """One field of a request, and why it cannot be accepted. `body` stands for the body as a whole."""

    field: str
    reason: str


class FaultyRequest(RequestError):
    """A request with faults that can be named."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)[:MOST_FAULTS]
        super().__init__("; ".join(f"{fault.field}: {fault.reason}" for fault in self.faults))


class BodyUnreadable(FaultyRequest):
    """The body is not JSON in UTF-8."""

    def __init__(self, reason: str) -> None:
        super().__init__([Fault("body", reason)])


class BodyTooLarge(FaultyRequest):
    """The body has more bytes than a request may have."""

    def __init__(self, limit: int) -> None:
        super().__init__([Fault("body", f"is larger than {limit} bytes")])


class FieldsInvalid(FaultyRequest):
    """The body is JSON, but some of its fields cannot be accepted."""


class ParametersInvalid(FaultyRequest):
    """Query parameters or headers that cannot be accepted."""

    @classmethod
    def of(cls, name: str, reason: str) -> ParametersInvalid:
        """One parameter or header, and why it is refused."""
        return cls([Fault(name, reason)])


class MediaTypeUnsupported(RequestError):
    """The body is declared to be something other than JSON."""

    def __init__(self) -> None:
        super().__init__("send the body as application/json")


class PathNotFound(RequestError):
    """Nothing is found at this path."""

    def __init__(self) -> None:
        super().__init__("there is nothing at this path")


class MethodUnsupported(RequestError):
    """The path exists, but not with this method."""

    def __init__(self, allowed: Sequence[str]) -> None:
        super().__init__(f"this path takes {' and '.join(allowed)} only")
        self.allowed = tuple(allowed)


class CallerUnknown(RequestError):
    """The request does not say on whose behalf it comes."""

    def __init__(self) -> None:
        super().__init__("the request carries no identity that this deployment accepts")


class CallerForbidden(RequestError):
    """The caller's identity cannot own tasks."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the caller's identity {reason}")
