"""The REST API for API keys: bodies, responses and operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

from pydantic import AfterValidator, BeforeValidator, Field, WithJsonSchema
from typing_extensions import TypedDict  # required by pydantic before Python 3.12

from duetime.contract.http.operation import Operation, Parameters, Returns
from duetime.contract.http.request_errors import Fault, FaultCode, FieldsInvalid
from duetime.contract.http.request_model import Body
from duetime.contract.http.timestamps import instant_of
from duetime.contract.http.validation_errors import read_body
from duetime.contract.mapping import response_of
from duetime.contract.tasks.fields import OWNER_PATTERN, TIME_SCHEMA, printable
from duetime.contract.tasks.queries import PageSize
from duetime.contract.tasks.responses import Instant
from duetime.domain.api_keys import ApiKeyState, NewApiKey
from duetime.domain.callers import Role
from duetime.domain.errors import ApiKeysOff
from duetime.domain.limits import MAX_API_KEY_NAME_LENGTH, MAX_PAGE
from duetime.domain.operating_parameters import API_KEY_KEPT, API_KEY_USE_PRECISION
from duetime.domain.times import DAY, HOUR, Millis

if TYPE_CHECKING:
    from duetime.contract.http.request_json import Document
    from duetime.domain.api_keys import ApiKey


def _instant_or_none(value: object) -> object:
    return None if value is None else instant_of(value)


class ApiKeyCreate(Body):
    """A key to be created."""

    name: Annotated[
        str,
        Field(
            min_length=1,
            max_length=MAX_API_KEY_NAME_LENGTH,
            description="Human-readable purpose of the key, which does not have to be unique.",
            examples=["billing worker"],
        ),
        AfterValidator(printable),
    ]
    roles: Annotated[
        list[Annotated[Role, Field(strict=False)]],
        Field(
            min_length=1,
            max_length=len(Role),
            description="The permissions that the key grants.",
            examples=[["writer"]],
        ),
    ]
    owner: Annotated[
        str | None,
        Field(
            pattern=f"^{OWNER_PATTERN}$",
            description="The owner that requests with the key act for. The default is the owner of this request.",
        ),
    ] = None
    expires_at: Annotated[
        Millis | None,
        BeforeValidator(_instant_or_none),
        WithJsonSchema({"anyOf": [TIME_SCHEMA, {"type": "null"}]}),
        Field(description="When the key expires; null if it does not expire."),
    ] = None


class ApiKeyListQuery(Parameters):
    """Parameters of `GET /v1/keys`."""

    limit: Annotated[PageSize, Field(description="Maximum number of keys on a page.")] = MAX_PAGE
    next_token: Annotated[str | None, Field(description="`next_token` from the previous page.")] = None


class ApiKeyResponse(TypedDict):
    """An API key, without its secret."""

    id: Annotated[str, Field(description="Id of the key, which is the key's non-secret part.")]
    name: Annotated[str, Field(description="Human-readable purpose of the key.")]
    owner: Annotated[str, Field(description="The owner that requests with the key act for.")]
    roles: Annotated[Sequence[Role], Field(description="The permissions that the key grants.")]
    state: ApiKeyState
    created_at: Annotated[Instant, Field(description="When the key was created.")]
    created_by: Annotated[str, Field(description="Who created the key.")]
    expires_at: Annotated[Instant | None, Field(description="When the key expires; null if it does not expire.")]
    revoked_at: Annotated[Instant | None, Field(description="When the key was revoked; null if it was not revoked.")]
    used_at: Annotated[
        Instant | None,
        Field(description="When the key was last used, to within an hour; null if it was never used."),
    ]


class CreatedApiKey(ApiKeyResponse):
    """A new API key, with its secret."""

    key: Annotated[
        str,
        Field(
            description="The key, for use in `Authorization: Bearer`. The key is not stored, so only this response "
            "shows it."
        ),
    ]


class ApiKeyPage(TypedDict):
    """A page of API keys."""

    keys: Annotated[Sequence[ApiKeyResponse], Field(description="The keys, in order of creation.")]
    next_token: Annotated[str | None, Field(description="Token of the next page; null on the last page.")]


def new_api_key(document: Document, now: Millis) -> NewApiKey:
    """Decodes a key to be created.

    Raises:
        FieldsInvalid: some fields are invalid.
    """
    body = read_body(ApiKeyCreate, document)
    if body.expires_at is not None and body.expires_at <= now:
        raise FieldsInvalid([Fault("expires_at", "should be in the future", FaultCode.OUT_OF_RANGE)])
    roles = tuple(role for role in Role if role in body.roles)
    return NewApiKey(body.name, roles, body.owner, body.expires_at)


def api_key_response(key: ApiKey, now: Millis) -> ApiKeyResponse:
    """The response for a key."""
    return response_of(ApiKeyResponse, key, state=key.state(now))


def created_api_key(key: ApiKey, text: str, now: Millis) -> CreatedApiKey:
    """The response for a new key."""
    return CreatedApiKey(**api_key_response(key, now), key=text)


CREATE = Operation(
    "createApiKey",
    "POST /v1/keys",
    "Create an API key",
    Returns(CreatedApiKey, "The key with its secret, which is never shown again.", status=201),
    description="Programs send the key as `Authorization: Bearer KEY` to the same paths with `/key` before `/v1`, "
    "such as `/key/v1/tasks`. To replace a key, create a new key, and revoke the old key when no program uses it "
    "anymore. Any number of keys can be active at once. Repeating the request creates another key.",
    body=ApiKeyCreate,
    role=Role.ADMIN,
    errors=(ApiKeysOff,),
)
LIST = Operation(
    "listApiKeys",
    "GET /v1/keys",
    "List API keys",
    Returns(ApiKeyPage, "A page of keys."),
    description="Keys of all owners, in order of creation. An expired or revoked key is listed for "
    f"another {API_KEY_KEPT // DAY} days. A new key is listed within seconds. A key's use is recorded at most once per "
    f"{API_KEY_USE_PRECISION // HOUR} hour.",
    query=ApiKeyListQuery,
    role=Role.ADMIN,
)
REVOKE = Operation(
    "revokeApiKey",
    "DELETE /v1/keys/{key_id}",
    "Revoke an API key",
    Returns(ApiKeyResponse, "The revoked key."),
    description="Requests with the key are rejected as soon as this request has returned, or after "
    "`key_cache_seconds` if the deployment caches its authorizer's decisions. A key that is already revoked does not "
    "change.",
    role=Role.ADMIN,
)
