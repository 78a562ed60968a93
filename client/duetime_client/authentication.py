"""Authentication of requests."""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING

from duetime_client.errors import CredentialsMissing

if TYPE_CHECKING:
    import httpx


class Authentication(StrEnum):
    """The methods of authentication."""

    NONE = "none"
    BEARER = "bearer"
    IAM = "iam"
    KEY = "key"


def authenticated(authentication: Authentication, token: str) -> httpx.Auth | None:
    """Return the httpx authentication for a method; `None` for API keys, which also need another address.

    Raises:
        CredentialsMissing: The token, the AWS credentials or a package is missing.
    """
    match authentication:
        case Authentication.NONE | Authentication.KEY:
            return None
        case Authentication.BEARER:
            if not token:
                raise CredentialsMissing("bearer authentication needs a token in DUETIME_TOKEN")
            from duetime_client.bearer_token import BearerToken  # noqa: PLC0415 - it needs httpx, an option's names do not

            return BearerToken(token)
        case Authentication.IAM:
            return signed_by_iam()


def signed_by_iam() -> httpx.Auth:
    """Return the authentication that signs requests with the environment's AWS credentials."""
    try:
        # botocore is imported here because it is an extra, and takes longer to import than all other modules.
        from duetime_client.sigv4 import SigV4  # noqa: PLC0415 - see the line above
    except ModuleNotFoundError as error:
        raise CredentialsMissing('IAM authentication needs botocore: pip install "duetime-client[aws]"') from error
    return SigV4.from_environment()
