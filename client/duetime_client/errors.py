"""The errors that this client raises."""

from __future__ import annotations

from dataclasses import dataclass


class ClientError(Exception):
    """Base class of this package's errors."""


class AddressInvalid(ClientError, ValueError):
    """The API's address is not an http or https URL, or it has a query or a fragment."""

    def __init__(self, url: str) -> None:
        hint = "" if "://" in url else "; it must begin with https:// or http://"
        super().__init__(f"{url!r} is not an http or https URL to which paths can be added{hint}")


class HeaderInvalid(ClientError, ValueError):
    """A value cannot be sent in an HTTP header. The message does not contain the value, which may be a secret."""

    def __init__(self, header: str) -> None:
        super().__init__(f"the value for the header {header} may contain only printable ASCII characters")


class NotJson(ClientError, ValueError):
    """JSON cannot represent a value in a request. The message names the field and a replacement, never the value."""


class CredentialsMissing(ClientError):
    """The chosen method of authentication lacks a token, credentials or a package."""


class DecryptionFailed(ClientError):
    """The codec cannot decrypt a value in a response, because its key differs or its key service does not respond."""

    def __init__(self, error: Exception) -> None:
        super().__init__(f"the codec cannot decrypt the response: {type(error).__name__} {error}".rstrip())


class Unreachable(ClientError):
    """The API did not respond; `sent` is true if the API may still have received the request."""

    def __init__(self, url: str, reason: str, *, sent: bool) -> None:
        super().__init__(f"cannot reach {url}: {reason}")
        self.url = url
        self.sent = sent


@dataclass(frozen=True, slots=True)
class InvalidField:
    """A field of a request that the API rejected."""

    field: str
    reason: str
    code: str = ""
    """The kind of fault, such as `required`, `unknown_field` or `out_of_range`; empty if the API gave no code."""


@dataclass(frozen=True, slots=True)
class Problem:
    """An RFC 9457 problem, or the closest equivalent for another error response."""

    status: int
    code: str
    title: str
    detail: str
    errors: tuple[InvalidField, ...] = ()
    retry_after: float | None = None
    quota: str = ""
    """The exhausted quota, such as `creates_per_second`; empty for other errors."""


class ApiError(ClientError):
    """The API responded with an error; subclasses exist for errors that callers handle differently."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(f"{problem.detail} ({problem.status} {problem.code})")
        self.problem = problem

    @property
    def status(self) -> int:
        """HTTP status of the response."""
        return self.problem.status

    @property
    def code(self) -> str:
        """Stable name of the error, as the API documents it."""
        return self.problem.code

    @property
    def retry_after(self) -> float | None:
        """The number of seconds after which the API suggests a retry."""
        return self.problem.retry_after


class InvalidRequest(ApiError):
    """The request is not valid; `errors` names the fields."""

    @property
    def errors(self) -> tuple[InvalidField, ...]:
        """The rejected fields with their reasons."""
        return self.problem.errors


class Unauthenticated(ApiError):
    """The caller's credentials are missing, not valid or expired."""


class Forbidden(ApiError):
    """The caller is not allowed to perform the operation."""


class NotFound(ApiError):
    """The caller has no task, schedule or other resource with this name."""


class Conflict(ApiError):
    """The state of the task or other resource does not allow the operation."""


class PreconditionFailed(ApiError):
    """The resource has changed since the version given in `if_match`."""


class RateLimited(ApiError):
    """The API rejected the request and all retries because of its rate limit or a quota; see `retry_after`."""

    @property
    def quota(self) -> str:
        """The exhausted quota; empty for the rate limit that all callers share."""
        return self.problem.quota


class ServerError(ApiError):
    """The API failed, and so did all retries."""


class UnexpectedResponse(ApiError):
    """The response does not come from a duetime API."""


class WaitTimeout(ClientError, TimeoutError):
    """The outcome of a task was not known before the timeout. The task continues."""

    def __init__(self, task_id: str, state: str, seconds: float) -> None:
        super().__init__(f"task {task_id} is {state} after {seconds:g} s")
        self.task_id = task_id
        self.state = state
