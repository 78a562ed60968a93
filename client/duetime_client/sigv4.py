"""AWS Signature Version 4 for a deployment whose API authorizes with IAM (extra `aws`)."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import botocore.session
import httpx
from botocore.auth import SigV4Auth
from botocore.awsrequest import AWSRequest
from botocore.exceptions import BotoCoreError

from duetime_client.errors import CredentialsMissing

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Generator

    from botocore.credentials import Credentials, ReadOnlyCredentials

SERVICE = "execute-api"


class SigV4(httpx.Auth):
    """Signs each request anew, so that a retry carries a fresh date and rotated credentials."""

    requires_request_body = True

    def __init__(self, credentials: Credentials, region: str | None) -> None:
        self._credentials = credentials
        self._region = region

    @classmethod
    def from_environment(cls) -> SigV4:
        """Find credentials and region as AWS tools do."""
        session = botocore.session.get_session()
        try:
            credentials = session.get_credentials()
            region = session.get_config_variable("region")
        except BotoCoreError as error:
            raise CredentialsMissing(f"AWS credentials cannot be read: {error}") from error
        if credentials is None:
            raise CredentialsMissing("IAM authentication needs AWS credentials, and none were found")
        return cls(credentials, region)

    def auth_flow(self, request: httpx.Request) -> Generator[httpx.Request, httpx.Response]:
        """Add the signature to a request."""
        self._sign(request, self._credentials.get_frozen_credentials())
        yield request

    async def async_auth_flow(self, request: httpx.Request) -> AsyncGenerator[httpx.Request, httpx.Response]:
        """Add the signature to an asynchronous request."""
        # Signing runs in a thread, because refreshing expiring credentials blocks.
        credentials = await asyncio.to_thread(self._credentials.get_frozen_credentials)
        await request.aread()
        self._sign(request, credentials)
        yield request

    def _sign(self, request: httpx.Request, credentials: ReadOnlyCredentials) -> None:
        region = region_of(request.url.host) or self._region
        if not region:
            raise CredentialsMissing("IAM authentication needs a region: set AWS_DEFAULT_REGION")
        # Only these headers are signed, because proxies can rewrite other headers.
        signed = AWSRequest(
            method=request.method,
            url=str(request.url),
            data=request.content,
            headers={"Host": request.headers["Host"]},
        )
        SigV4Auth(credentials, SERVICE, region).add_auth(signed)
        request.headers.update(signed.headers.items())


def region_of(host: str) -> str | None:
    """The region in a host name of API Gateway, which has the form `<id>.execute-api.<region>.amazonaws.com`."""
    match host.split("."):
        case [_, "execute-api", region, "amazonaws", *_]:
            return region
        case _:
            return None
