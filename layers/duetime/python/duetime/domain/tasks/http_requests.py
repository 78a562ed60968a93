"""Custom requests to HTTP endpoints, and the parts of responses to keep."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import StrEnum

from duetime.domain.limits import MAX_RESULT_BYTES

BODILESS = frozenset({"GET", "HEAD"})
"""Methods whose requests have no content (Source: RFC 9110, 9.3)."""
PAYLOAD_METHODS = frozenset({"POST", "PUT", "PATCH"})
"""Methods whose default body is the task's payload."""


class BodyKind(StrEnum):
    """The encoding of a request's body."""

    JSON = "json"
    FORM = "form"
    TEXT = "text"
    BASE64 = "base64"

    @property
    def is_structured(self) -> bool:
        """Whether it is stored as JSON text."""
        return self in (BodyKind.JSON, BodyKind.FORM)


@dataclass(frozen=True, slots=True)
class RequestBody:
    """The body of a request.

    Attributes:
        text: JSON text; for a form, a JSON object of texts; otherwise the text, or base64 of the bytes.
    """

    kind: BodyKind
    text: str


class AuthScheme(StrEnum):
    """How a secret is sent in a header.

    Attributes:
        BEARER: `Authorization: Bearer`, with the secret.
        BASIC: `Authorization: Basic`, with a user's name and password.
        HEADER: a header of any name, with the secret.
        OAUTH_CLIENT: `Authorization: Bearer`, with a token from the client credentials flow of OAuth 2.0.
    """

    BEARER = "bearer"
    BASIC = "basic"
    HEADER = "header"
    OAUTH_CLIENT = "oauth_client"


@dataclass(frozen=True, slots=True)
class Auth:
    """Authentication of a request; the secret itself is in Secrets Manager.

    Attributes:
        secret: the secret's name in the deployment's settings.
        header: the name of the header, for the scheme `header`.
    """

    secret: str
    scheme: AuthScheme
    header: str = ""


class Keep(StrEnum):
    """The part of a response that becomes the task's result.

    Attributes:
        BODY: its body.
        ALL: its status, headers and body.
        NONE: nothing; its body is not read.
    """

    BODY = "body"
    ALL = "all"
    NONE = "none"


@dataclass(frozen=True, slots=True)
class ResponseOptions:
    """The part of a response to keep.

    Attributes:
        max_bytes: maximum size of its body.
        truncates: whether a larger body is truncated; otherwise it fails the attempt.
    """

    keep: Keep = Keep.BODY
    max_bytes: int = MAX_RESULT_BYTES
    truncates: bool = False


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """Differences from duetime's default request, which is a signed `PUT` of the envelope.

    Attributes:
        method: of a custom request; empty for `POST` if there is a body.
        headers: pairs of names and values. Values may contain placeholders, as may those of the query and the body.
        success: statuses that mean success; empty for all 2xx.
    """

    method: str = ""
    headers: tuple[tuple[str, str], ...] = ()
    query: tuple[tuple[str, str], ...] = ()
    body: RequestBody | None = None
    success: tuple[int, ...] = ()
    auth: Auth | None = None
    response: ResponseOptions = field(default_factory=ResponseOptions)

    @property
    def is_custom(self) -> bool:
        """Whether it replaces duetime's default request: no envelope, phases or signature."""
        return bool(self.method) or self.body is not None

    @property
    def sent_method(self) -> str:
        """The method of a custom request."""
        return self.method or "POST"

    @property
    def size(self) -> int:
        """Size in bytes of UTF-8."""
        pairs = [text for pair in (*self.headers, *self.query) for text in pair]
        return sum(len(text.encode()) for text in (*pairs, self.body.text if self.body else ""))


def form_fields(body: RequestBody) -> list[tuple[str, str]]:
    """The fields of a form."""
    return list(json.loads(body.text).items())
