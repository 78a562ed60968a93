"""Errors for requests that are rejected before they reach a service."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.domain.errors import FaultCode as FaultCode  # noqa: PLC0414 - it is part of a fault
from duetime.domain.errors import RequestError
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

MOST_FAULTS = 20
"""Maximum number of faults in a problem; longer lists would not help."""


@frozen
class Fault:
    """A request field and the reason for its rejection. The field `body` stands for the entire body."""

    field: str
    reason: str
    code: FaultCode = FaultCode.INVALID


class FaultyRequest(RequestError):
    """A request with invalid fields."""

    def __init__(self, faults: Iterable[Fault]) -> None:
        self.faults = tuple(faults)[:MOST_FAULTS]
        super().__init__("; ".join(f"{fault.field}: {fault.reason}" for fault in self.faults))


class BodyUnreadable(FaultyRequest):
    """The body is not JSON in UTF-8."""

    def __init__(self, reason: str) -> None:
        super().__init__([Fault("body", reason, FaultCode.UNREADABLE)])


class BodyTooLarge(FaultyRequest):
    """The body exceeds the maximum size of a request."""

    def __init__(self, limit: int) -> None:
        super().__init__([Fault("body", f"is larger than {limit} bytes", FaultCode.TOO_LONG)])


class FieldsInvalid(FaultyRequest):
    """The body is JSON, but some of its fields are invalid."""


class ParametersInvalid(FaultyRequest):
    """Some query parameters or headers are invalid."""

    @classmethod
    def of(cls, name: str, reason: str, code: FaultCode = FaultCode.INVALID) -> ParametersInvalid:
        """An error about a single parameter or header."""
        return cls([Fault(name, reason, code)])


class MediaTypeUnsupported(FaultyRequest):
    """The operation does not accept the declared media type of the body.

    Attributes:
        accepted: the accepted media types.
    """

    def __init__(self, reason: str = "", accepted: Sequence[str] = ("application/json",)) -> None:
        wanted = f"send the body as {' or '.join(accepted)}"
        text = f"{reason}; {wanted}" if reason else wanted
        super().__init__([Fault("Content-Type", text, FaultCode.UNSUPPORTED)])
        self.accepted = tuple(accepted)


class EncodingUnsupported(FaultyRequest):
    """The body has an unsupported `Content-Encoding`."""

    def __init__(self, encoding: str) -> None:
        reason = f"{encoding!r} is not supported: send the body uncompressed or compressed with gzip"
        super().__init__([Fault("Content-Encoding", reason, FaultCode.UNSUPPORTED)])


class PathNotFound(RequestError):
    """No resource exists at this path."""

    def __init__(self) -> None:
        super().__init__("there is nothing at this path; GET /v1 links to the description of the API")


def allowed(declared: Sequence[str]) -> tuple[str, ...]:
    """The methods that a path accepts, including HEAD for paths with GET (RFC 9110, 9.1)."""
    found = [each for method in declared for each in (("GET", "HEAD") if method == "GET" else (method,))]
    return (*found, "OPTIONS")


class MethodUnsupported(RequestError):
    """The path exists, but not with this method.

    Attributes:
        allowed: the accepted methods.
    """

    def __init__(self, declared: Sequence[str]) -> None:
        *others, last = declared
        super().__init__(f"this path takes {', '.join(others)} and {last}" if others else f"this path takes {last}")
        self.allowed = allowed(declared)


class CallerUnknown(RequestError):
    """The request does not identify its caller."""

    def __init__(self) -> None:
        super().__init__("the request carries no identity that this deployment accepts")


class CallerForbidden(RequestError):
    """The caller's identity cannot own tasks."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the caller's identity {reason}")
