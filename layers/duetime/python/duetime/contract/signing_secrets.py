"""The secrets and public keys with which receivers verify HTTP calls, over REST."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict  # pydantic requires it before Python 3.12

from duetime.contract.http.operation import Operation, Parameters, Returns
from duetime.contract.tasks.fields import OWNER_PATTERN
from duetime.contract.tasks.responses import Instant
from duetime.domain.callers import Role

_PUBLIC_KEY = "Public key (Ed25519) in the form of Standard Webhooks: `whpk_` and base64."
_IS_CURRENT = "Whether it is the newest; the previous one signs, too."


class SigningSecret(TypedDict):
    """A secret that signs HTTP calls for the caller, and the key pair that signs them, too."""

    secret: Annotated[str, Field(description="The secret in the form of Standard Webhooks: `whsec_` and base64.")]
    public_key: Annotated[str, Field(description=_PUBLIC_KEY)]
    is_current: Annotated[bool, Field(description=_IS_CURRENT)]


class SigningSecretList(TypedDict):
    """The secrets that sign HTTP calls for the caller."""

    secrets: Annotated[
        Sequence[SigningSecret], Field(description="The live secrets, the current one first; none: nothing is signed.")
    ]
    rotates_at: Annotated[
        Instant | None, Field(description="When a schedule replaces the current one; null if there is no schedule.")
    ]


class SigningKey(TypedDict):
    """A public key of an owner."""

    public_key: Annotated[str, Field(description=_PUBLIC_KEY)]
    is_current: Annotated[bool, Field(description=_IS_CURRENT)]


class SigningKeyList(TypedDict):
    """The public keys that verify HTTP calls for an owner."""

    owner: Annotated[str, Field(description="The owner.")]
    keys: Annotated[
        Sequence[SigningKey], Field(description="The live keys, the current one first; none: nothing is signed.")
    ]
    rotates_at: Annotated[
        Instant | None, Field(description="When a schedule replaces the current one; null if there is no schedule.")
    ]


class SigningKeyQuery(Parameters):
    """Parameters of `GET /v1/signing-keys`."""

    owner: Annotated[
        str,
        Field(
            pattern=f"^{OWNER_PATTERN}$",
            description="The owner for whose tasks the calls are made, as `owner` in their body.",
            examples=["123456789012:role/Billing"],
        ),
    ]


LIST = Operation(
    "listSigningSecrets",
    "GET /v1/signing-secrets",
    "List the secrets that sign your HTTP calls",
    Returns(SigningSecretList, "The secrets."),
    description="Every HTTP call for your tasks (targets, queries, callbacks, notices) is signed with them by Standard "
    "Webhooks: symmetrically (`v1`, by the secret) and asymmetrically (`v1a`, by the key pair). Other owners have "
    "others, so a call that verifies was made for you.",
    # Anyone who knows them can sign calls.
    role=Role.WRITER,
)
KEYS = Operation(
    "listPublicKeys",
    "GET /v1/signing-keys",
    "List the public keys that verify an owner's HTTP calls",
    Returns(SigningKeyList, "The keys."),
    description="Needs no credentials. With a public key, a receiver verifies the signatures `v1a` of calls without "
    "being able to forge them. Owners are not checked: every name has keys, whether it has tasks or not.",
    query=SigningKeyQuery,
    is_public=True,
)
