"""Requests that are refused before any use case sees them, named for what happened."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING

from duetime.domain.errors import RequestError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MOST_FAULTS = 20
"""A problem lists no more faults than this: whoever sends thousands is not helped by reading them all."""


class FaultCode(StrEnum):
    """The kind of fault, for programs."""

    REQUIRED = "required"
    UNKNOWN_FIELD = "unknown_field"
    READ_ONLY = "read_only"
    CANNOT_CHANGE = "cannot_change"
    WRONG_TYPE = "wrong_type"
    TOO_SHORT = "too_short"
    TOO_LONG = "too_long"
    TOO_DEEP = "too_deep"
    OUT_OF_RANGE = "out_of_range"
    PATTERN = "pattern"
    NOT_ALLOWED = "not_allowed"
    DUPLICATE = "duplicate"
    CONFLICT = "conflict"
    UNREADABLE = "unreadable"
    UNSUPPORTED = "unsupported"
    INVALID = "invalid"


@dataclass(frozen=True, slots=True)
class Fault:
    """One field of a request, and why it cannot be accepted. `body` stands for the body as a whole."""

    field: str
    reason: str
    code: FaultCode = FaultCode.INVALID


class FaultyRequest(RequestError):
    """A request with faults that can be named."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)[:MOST_FAULTS]
        super().__init__("; ".join(f"{fault.field}: {fault.reason}" for fault in self.faults))


class BodyUnreadable(FaultyRequest):
    """The body is not JSON in UTF-8."""

    def __init__(self, reason: str) -> None:
        super().__init__([Fault("body", reason, FaultCode.UNREADABLE)])


class BodyTooLarge(FaultyRequest):
    """The body has more bytes than a request may have."""

    def __init__(self, limit: int) -> None:
        super().__init__([Fault("body", f"is larger than {limit} bytes", FaultCode.TOO_LONG)])


class FieldsInvalid(FaultyRequest):
    """The body is JSON, but some of its fields cannot be accepted."""


class ParametersInvalid(FaultyRequest):
    """Query parameters or headers that cannot be accepted."""

    @classmethod
    def of(cls, name: str, reason: str, code: FaultCode = FaultCode.INVALID) -> ParametersInvalid:
        """One parameter or header, and why it is refused."""
        return cls([Fault(name, reason, code)])


class MediaTypeUnsupported(FaultyRequest):
    """The body is declared to be something other than what the operation takes.

    Attributes:
        accepted: the media types that it takes.
    """

    def __init__(self, reason: str = "", accepted: Sequence[str] = ("application/json",)) -> None:
        wanted = f"send the body as {' or '.join(accepted)}"
        text = f"{reason}; {wanted}" if reason else wanted
        super().__init__([Fault("Content-Type", text, FaultCode.UNSUPPORTED)])
        self.accepted = tuple(accepted)


class EncodingUnsupported(FaultyRequest):
    """The body is packed in a way that nobody here can unpack."""

    def __init__(self, encoding: str) -> None:
        reason = f"{encoding!r} is not supported: send the body as it is, or packed by gzip"
        super().__init__([Fault("Content-Encoding", reason, FaultCode.UNSUPPORTED)])


class PathNotFound(RequestError):
    """Nothing is found at this path."""

    def __init__(self) -> None:
        super().__init__("there is nothing at this path; GET /v1 says where the API is described")


def allowed(declared: Sequence[str]) -> tuple[str, ...]:
    """The methods of a path with those that follow from them: whatever answers GET answers HEAD (RFC 9110, 9.1)."""
    found = [each for method in declared for each in (("GET", "HEAD") if method == "GET" else (method,))]
    return (*found, "OPTIONS")


class MethodUnsupported(RequestError):
    """The path exists, but not with this method.

    Attributes:
        allowed: the methods that it takes.
    """

    def __init__(self, declared: Sequence[str]) -> None:
        *others, last = declared
        super().__init__(f"this path takes {', '.join(others)} and {last}" if others else f"this path takes {last}")
        self.allowed = allowed(declared)


class CallerUnknown(RequestError):
    """The request does not say on whose behalf it comes."""

    def __init__(self) -> None:
        super().__init__("the request carries no identity that this deployment accepts")


class CallerForbidden(RequestError):
    """The caller's identity cannot own tasks."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the caller's identity {reason}")
