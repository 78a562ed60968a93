"""What can go wrong between this client and the API, each with its own message."""

from __future__ import annotations

from dataclasses import dataclass


class ClientError(Exception):
    """Anything this package raises on purpose."""


class AddressInvalid(ClientError, ValueError):
    """The API's address is not an http or https URL, or it has a query."""

    def __init__(self, url: str) -> None:
        super().__init__(f"{url!r} is not an http or https URL to which paths can be added")


class HeaderInvalid(ClientError, ValueError):
    """A value cannot be sent in an HTTP header. The message leaves it out, as it may be a secret."""

    def __init__(self, header: str) -> None:
        super().__init__(f"the value for the header {header} may hold printable ASCII characters only")


class CredentialsMissing(ClientError):
    """The chosen way to authenticate lacks what it needs on this machine."""


class Unreachable(ClientError):
    """No answer came from the API; `sent` tells whether it may have received the request all the same."""

    def __init__(self, url: str, reason: str, *, sent: bool) -> None:
        super().__init__(f"cannot reach {url}: {reason}")
        self.url = url
        self.sent = sent


@dataclass(frozen=True, slots=True)
class InvalidField:
    """One field of a request that the API refused."""

    field: str
    reason: str


@dataclass(frozen=True, slots=True)
class Problem:
    """What the API says of an error: an RFC 9457 problem, or what could be read of another answer."""

    status: int
    code: str
    title: str
    detail: str
    errors: tuple[InvalidField, ...] = ()
    retry_after: float | None = None


class ApiError(ClientError):
    """The API answered with an error; subclasses name the ones that callers tell apart."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(f"{problem.detail} ({problem.status} {problem.code})")
        self.problem = problem

    @property
    def status(self) -> int:
        """HTTP status of the answer."""
        return self.problem.status

    @property
    def code(self) -> str:
        """Stable name of the error, as the API documents it."""
        return self.problem.code

    @property
    def retry_after(self) -> float | None:
        """Seconds after which the API asks to be tried again."""
        return self.problem.retry_after


class InvalidRequest(ApiError):
    """The request breaks the contract; `errors` names the fields."""

    @property
    def errors(self) -> tuple[InvalidField, ...]:
        """Every refused field with its reason."""
        return self.problem.errors


class Forbidden(ApiError):
    """The API does not know the caller, or does not let them do this."""


class TaskNotFound(ApiError):
    """The caller has no task of this id."""


class Conflict(ApiError):
    """The task's state does not allow this."""


class PreconditionFailed(ApiError):
    """The task changed since the version that the request named."""


class Throttled(ApiError):
    """The API asks its caller to slow down, and went on asking through every retry."""


class UnexpectedResponse(ApiError):
    """The address answered, but not as a duetime API does."""
