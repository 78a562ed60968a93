"""Fields of a custom request to an HTTP target, and their rules."""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, Field, model_validator

from duetime.contract.http.request_model import Body
from duetime.domain.limits import (
    MAX_HTTP_FIELD_LENGTH,
    MAX_HTTP_FIELD_NAME_LENGTH,
    MAX_HTTP_FIELDS,
    MAX_REQUEST_BYTES,
    MAX_RESULT_BYTES,
    MAX_SECRET_NAME_LENGTH,
    MAX_SUCCESS_STATUSES,
)
from duetime.domain.tasks import placeholders

if TYPE_CHECKING:
    from typing import Self

_TOKEN = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
"""The name of a header (Source: RFC 9110, 5.6.2)."""
_VISIBLE = re.compile(r"[!-~]([ -~]*[!-~])?")
"""The value of a header, without characters that could start another header (Source: RFC 9110, 5.5)."""
_CONNECTION = frozenset(
    {"connection", "content-length", "expect", "host", "keep-alive", "te", "trailer", "transfer-encoding", "upgrade"}
)
"""Connection headers, which belong to the HTTP client (Source: RFC 9110, 7.6.1)."""
_SECRET = frozenset({"authorization", "cookie"})
_OURS = frozenset({"idempotency-key", "traceparent", "tracestate"})
_OUR_PREFIXES = ("duetime-", "webhook-")
SECRET_NAME_PATTERN = rf"^[A-Za-z0-9_][A-Za-z0-9_./-]{{0,{MAX_SECRET_NAME_LENGTH - 1}}}$"
_FORMS = ("json", "form", "text", "base64")


def header_name(name: str) -> str:
    """Rejects invalid names of headers, and headers that users may not set."""
    lower = name.lower()
    if _TOKEN.fullmatch(name) is None:
        raise ValueError("should be the name of a header: letters, digits and -")
    if lower in _CONNECTION or lower.startswith("proxy-"):
        raise ValueError("is a header of the connection, which cannot be set")
    if lower in _SECRET:
        raise ValueError("is a header with a secret, which would be stored and shown; use `auth`")
    if lower in _OURS or lower.startswith(_OUR_PREFIXES):
        raise ValueError("is a header that duetime sets itself")
    return name


def _header_value(text: str) -> str:
    """Rejects characters that could end a header, and unknown placeholders."""
    if _VISIBLE.fullmatch(text) is None:
        raise ValueError("should be visible ASCII characters, with spaces between them only")
    return _with_placeholders(text)


def _with_placeholders(text: str) -> str:
    if why := placeholders.refusal(text):
        raise ValueError(why)
    return text


def _each_header_once(headers: dict[str, str]) -> dict[str, str]:
    if len({name.lower() for name in headers}) != len(headers):
        raise ValueError("names a header twice; upper and lower case are the same")
    return headers


def _base64(text: str) -> str:
    try:
        base64.b64decode(text, validate=True)
    except ValueError:
        raise ValueError("is not base64") from None
    return text


def _texts_known(value: Any) -> Any:  # noqa: ANN401 - any JSON
    for _, text, is_key in placeholders.texts_of(value, ()):
        if is_key:
            raise ValueError("has a key with a placeholder; only values may hold one")
        _with_placeholders(text)
    return value


_Name = Annotated[str, Field(min_length=1, max_length=MAX_HTTP_FIELD_NAME_LENGTH)]
_Value = Annotated[str, Field(max_length=MAX_HTTP_FIELD_LENGTH), AfterValidator(_with_placeholders)]
RequestMethod = Annotated[
    Literal["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"],
    Field(
        description="Method of a request of your own. With `method` or `body`, the request is sent as described here, "
        "unsigned; without them it is the signed `PUT` with `?action=run` and all facts of the run.",
        examples=["POST"],
    ),
]
RequestHeaders = Annotated[
    dict[
        Annotated[_Name, AfterValidator(header_name)],
        Annotated[str, Field(min_length=1, max_length=MAX_HTTP_FIELD_LENGTH), AfterValidator(_header_value)],
    ],
    Field(
        max_length=MAX_HTTP_FIELDS,
        description="Headers to add. Values may hold placeholders. Secrets belong in `auth`.",
        examples=[{"Accept": "application/json"}],
    ),
    AfterValidator(_each_header_once),
]
RequestQuery = Annotated[
    dict[_Name, _Value],
    Field(
        max_length=MAX_HTTP_FIELDS,
        description="Parameters to add to the URL's query; they are percent-encoded. Values may hold placeholders.",
        examples=[{"day": "<duetime.scheduled-at>"}],
    ),
]
SuccessStatuses = Annotated[
    list[Annotated[int, Field(ge=200, le=599)]],
    Field(
        min_length=1,
        max_length=MAX_SUCCESS_STATUSES,
        description="Statuses that mean success, instead of all from 200 to 299. Any other of these is retried.",
        examples=[[200, 404]],
    ),
]


class RequestBody(Body):
    """The body of a request, in one of four forms; texts may contain placeholders."""

    json_: Annotated[
        Any, Field(alias="json", description="Any JSON.", examples=[{"text": "done"}]), AfterValidator(_texts_known)
    ] = None
    form: Annotated[
        dict[_Name, _Value] | None,
        Field(description="Fields of a form, sent as `application/x-www-form-urlencoded`.", examples=[{"to": "team"}]),
    ] = None
    text: Annotated[
        Annotated[str, AfterValidator(_with_placeholders)] | None,
        Field(max_length=MAX_REQUEST_BYTES, description="Text in UTF-8.", examples=["done"]),
    ] = None
    base64: Annotated[
        Annotated[str, AfterValidator(_base64)] | None,
        Field(max_length=MAX_REQUEST_BYTES, description="Bytes, base64; without placeholders.", examples=["AAEC"]),
    ] = None

    @model_validator(mode="after")
    def _is_one(self) -> Self:
        given = {name for name in self.model_fields_set if name == "json_" or getattr(self, name) is not None}
        if len(given) != 1 or given != self.model_fields_set:
            raise ValueError(f"should have exactly one of {', '.join(f'`{form}`' for form in _FORMS)}")
        return self


class RequestAuth(Body):
    """Authentication of the request."""

    secret: Annotated[
        str,
        Field(
            pattern=SECRET_NAME_PATTERN,
            description="Name of a secret in the deployment's settings (`http_secrets`), never the secret itself.",
            examples=["crm"],
        ),
    ]
    scheme: Annotated[
        Literal["bearer", "basic", "header", "oauth_client"],
        Field(
            description="`bearer`, `basic`: an `Authorization` header. `header`: a header of your own. `oauth_client`: "
            "a bearer token, fetched with OAuth 2.0's client credentials."
        ),
    ]
    header: Annotated[
        Annotated[str, AfterValidator(header_name)] | None,
        Field(
            max_length=MAX_HTTP_FIELD_NAME_LENGTH,
            description="Name of the header, for the scheme `header`.",
            examples=["X-Api-Key"],
        ),
    ] = None


class ResponseOptions(Body):
    """The part of the response that becomes the task's result."""

    keep: Annotated[
        Literal["body", "all", "none"],
        Field(description="`body`; `all`: an object of `status`, `headers` and `body`; `none`: the body is not read."),
    ] = "body"
    max_bytes: Annotated[int, Field(ge=1, le=MAX_RESULT_BYTES, description="Size of the body, in bytes.")] = (
        MAX_RESULT_BYTES
    )
    when_larger: Annotated[
        Literal["fail", "truncate"],
        Field(description="Whether a larger body fails the task, or is cut off, and is a text then."),
    ] = "fail"
