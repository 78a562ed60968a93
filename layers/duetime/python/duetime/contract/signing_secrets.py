"""The secrets that sign the caller's HTTP calls, over REST."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated

from pydantic import Field
from typing_extensions import TypedDict  # pydantic requires it before Python 3.12

from duetime.contract.http.operation import Operation, Returns
from duetime.domain.callers import Role


class SigningSecret(TypedDict):
    """A secret that signs HTTP calls for the caller."""

    secret: Annotated[str, Field(description="The secret in the form of Standard Webhooks: `whsec_` and base64.")]
    is_current: Annotated[bool, Field(description="Whether it is the newest; the previous one signs, too.")]


class SigningSecretList(TypedDict):
    """The secrets that sign HTTP calls for the caller."""

    secrets: Annotated[
        Sequence[SigningSecret], Field(description="The live secrets, the current one first; none: nothing is signed.")
    ]


def signing_secrets_response(secrets: Sequence[str]) -> SigningSecretList:
    """The response with the live secrets of an owner, the current one first."""
    return SigningSecretList(
        secrets=[SigningSecret(secret=each, is_current=not number) for number, each in enumerate(secrets)]
    )


LIST = Operation(
    "listSigningSecrets",
    "GET /v1/signing-secrets",
    "List the secrets that sign your HTTP calls",
    Returns(SigningSecretList, "The secrets."),
    description="Every HTTP call for your tasks (targets, queries, callbacks, notices) is signed with them by Standard "
    "Webhooks. Other owners have other secrets, so a call that verifies was made for you.",
    # Who knows them can sign calls.
    role=Role.WRITER,
)
