"""What is sent to an HTTP endpoint instead of duetime's own request, and what of its response is kept."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import StrEnum

from duetime.domain.limits import MAX_RESULT_BYTES

BODILESS = frozenset({"GET", "HEAD"})
"""Methods whose requests have no content (Source: RFC 9110, 9.3)."""
PAYLOAD_METHODS = frozenset({"POST", "PUT", "PATCH"})
"""Methods whose body is the task's payload, unless another one is given."""


class BodyKind(StrEnum):
    """How the body of a request is written down."""

    JSON = "json"
    FORM = "form"
    TEXT = "text"
    BASE64 = "base64"


@dataclass(frozen=True, slots=True)
class RequestBody:
    """The body of a request.

    Attributes:
        text: JSON text; of a form, that of an object of texts; otherwise the text, or the base64 of the bytes.
    """

    kind: BodyKind
    text: str


class AuthScheme(StrEnum):
    """How a secret is made into a header.

    Attributes:
        BEARER: `Authorization: Bearer`, with the secret.
        BASIC: `Authorization: Basic`, with a user's name and password.
        HEADER: a header of any name, with the secret.
        OAUTH_CLIENT: `Authorization: Bearer`, with a token that is fetched by OAuth 2.0's client credentials.
    """

    BEARER = "bearer"
    BASIC = "basic"
    HEADER = "header"
    OAUTH_CLIENT = "oauth_client"


@dataclass(frozen=True, slots=True)
class Auth:
    """What a request proves its sender with; the secret itself is in Secrets Manager.

    Attributes:
        secret: the secret's name in the deployment's settings.
        header: the name of the header, for the scheme `header`.
    """

    secret: str
    scheme: AuthScheme
    header: str = ""


class Keep(StrEnum):
    """What of a response is the task's result.

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
    """What of a response is kept.

    Attributes:
        max_bytes: of its body.
        truncates: whether a larger body is cut off there; otherwise it fails the attempt.
    """

    keep: Keep = Keep.BODY
    max_bytes: int = MAX_RESULT_BYTES
    truncates: bool = False


@dataclass(frozen=True, slots=True)
class HttpRequest:
    """What differs from duetime's own request, which is a signed `PUT` of the envelope.

    Attributes:
        method: the method of a request of the user's own; empty for `POST` if there is a body.
        headers: pairs of names and values, which may hold placeholders; so may those of the query and the body.
        success: the statuses that mean success; empty for all of 2xx.
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
        """Whether it replaces duetime's own request: no envelope, no phase, no signature."""
        return bool(self.method) or self.body is not None

    @property
    def sent_method(self) -> str:
        """The method of a request that replaces duetime's own."""
        return self.method or "POST"

    @property
    def size(self) -> int:
        """Bytes that it takes, in UTF-8."""
        pairs = [text for pair in (*self.headers, *self.query) for text in pair]
        return sum(len(text.encode()) for text in (*pairs, self.body.text if self.body else ""))


def form_fields(body: RequestBody) -> list[tuple[str, str]]:
    """The fields of a form."""
    return list(json.loads(body.text).items())
