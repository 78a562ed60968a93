"""The REST API for the secrets and public keys with which receivers verify HTTP calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict  # required by pydantic before Python 3.12

from duetime.contract.http.operation import Operation, Parameters, Returns
from duetime.contract.tasks.fields import OWNER_PATTERN
from duetime.contract.tasks.responses import Instant
from duetime.domain.callers import Role

_PUBLIC_KEY = "Public key (Ed25519) in Standard Webhooks format: `whpk_` and base64."
_IS_CURRENT = "Whether this entry is the newest; the previous entry also signs calls."


class SigningSecret(TypedDict):
    """A secret and a key pair that both sign HTTP calls for the caller."""

    secret: Annotated[str, Field(description="The secret in Standard Webhooks format: `whsec_` and base64.")]
    public_key: Annotated[str, Field(description=_PUBLIC_KEY)]
    is_current: Annotated[bool, Field(description=_IS_CURRENT)]


class SigningSecretList(TypedDict):
    """The secrets that sign HTTP calls for the caller."""

    secrets: Annotated[
        Sequence[SigningSecret],
        Field(description="The active secrets, with the current secret first; if empty, calls are not signed."),
    ]
    rotates_at: Annotated[
        Instant | None,
        Field(description="When the rotation schedule replaces the current key pair; null without a schedule."),
    ]


class SigningKey(TypedDict):
    """A public key of an owner."""

    public_key: Annotated[str, Field(description=_PUBLIC_KEY)]
    is_current: Annotated[bool, Field(description=_IS_CURRENT)]


class SigningKeyList(TypedDict):
    """The public keys that verify HTTP calls for an owner."""

    owner: Annotated[str, Field(description="The owner.")]
    keys: Annotated[
        Sequence[SigningKey],
        Field(description="The active keys, with the current key first; if empty, calls are not signed."),
    ]
    rotates_at: Annotated[
        Instant | None,
        Field(description="When the rotation schedule replaces the current key pair; null without a schedule."),
    ]


class SigningKeyQuery(Parameters):
    """Parameters of `GET /v1/signing-keys`."""

    owner: Annotated[
        str,
        Field(
            pattern=f"^{OWNER_PATTERN}$",
            description="The owner of the tasks that make the calls, as in `owner` of the request body.",
            examples=["123456789012:role/Billing"],
        ),
    ]


LIST = Operation(
    "listSigningSecrets",
    "GET /v1/signing-secrets",
    "List the secrets that sign your HTTP calls",
    Returns(SigningSecretList, "The secrets."),
    description="Every HTTP call for your tasks (targets, queries, callbacks, notices), except custom requests, has "
    "Standard Webhooks signatures: symmetric (`v1`, with the secret) and asymmetric (`v1a`, with the key pair). Other "
    "owners have different secrets, so a call whose signature verifies was made for you.",
    # Readers have no access, because anyone who knows the secrets can sign calls.
    role=Role.WRITER,
)
KEYS = Operation(
    "listPublicKeys",
    "GET /v1/signing-keys",
    "List the public keys that verify an owner's HTTP calls",
    Returns(SigningKeyList, "The keys."),
    description="Needs no credentials. With a public key, a receiver verifies the signatures `v1a` of calls without "
    "being able to forge them. Owners are not checked: every name has keys, with or without tasks.",
    query=SigningKeyQuery,
    is_public=True,
)
