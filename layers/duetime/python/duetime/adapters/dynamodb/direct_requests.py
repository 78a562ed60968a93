"""Sends the requests of a DynamoDB client with two thirds of botocore's processor time.

botocore builds, signs, sends and checks each request through a hundred objects and events. Nearly all requests need one
signature and one answer, so these are made here; botocore repeats the others by its own rules.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import lru_cache
from hashlib import sha256
from socket import SO_KEEPALIVE, SOL_SOCKET
from ssl import create_default_context
from typing import TYPE_CHECKING, Any, TypeAlias
from urllib.parse import urlsplit
from zlib import crc32

from botocore.httpsession import get_cert_path
from urllib3 import Timeout, connection_from_url
from urllib3.connection import HTTPConnection
from urllib3.exceptions import HTTPError

from duetime.adapters.dynamodb.response_parser import AttributeParser

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from botocore.credentials import Credentials
    from botocore.model import OperationModel
    from urllib3 import BaseHTTPResponse

    Answer: TypeAlias = tuple["HttpAnswer", dict[str, Any]]

_SUCCESS, _REFUSED = 200, 400
_CONDITION_FAILED = "ConditionalCheckFailedException"
"""The error that no repetition changes; botocore repeats requests with other errors, or raises theirs."""
_SERVICE, _ALGORITHM = "dynamodb", "AWS4-HMAC-SHA256"


@dataclass(frozen=True, slots=True)
class HttpAnswer:
    """As much of an HTTP response as botocore reads of it after it was parsed."""

    status_code: int
    headers: Mapping[str, str]


class DirectRequests:
    """Makes the first attempt at each request of a client, as a handler of botocore's event `before-call`.

    A request without a final answer is left to botocore: all writes are safe to repeat.

    Args:
        endpoint: URL of DynamoDB.
        region: its region.
        credentials: sign the requests.
        config: time limits and number of connections.
        authorities: path of the certificates to trust; botocore's by default.
        now: the time of the signatures.
    """

    def __init__(
        self,
        endpoint: str,
        region: str,
        credentials: Credentials,
        config: Any,  # noqa: ANN401 - a Config, whose attributes are not in the stubs
        authorities: str | None = None,
        now: Callable[[], datetime] = lambda: datetime.now(UTC),
    ) -> None:
        self._host = urlsplit(endpoint).netloc
        self._region = region
        self._credentials = credentials
        self._now = now
        self._parser: Any = AttributeParser()
        secured: dict[str, Any] = {}
        if endpoint.startswith("https"):
            # One context for all connections: each would load the certificates again.
            secured["ssl_context"] = create_default_context(cafile=authorities or get_cert_path(True))  # noqa: FBT003 - its name
        self._connections = connection_from_url(
            endpoint,
            maxsize=config.max_pool_connections,
            timeout=Timeout(connect=config.connect_timeout, read=config.read_timeout),
            socket_options=[*HTTPConnection.default_socket_options, (SOL_SOCKET, SO_KEEPALIVE, 1)],
            **secured,
        )

    def __call__(self, model: OperationModel, params: dict[str, Any], **_: object) -> Answer | None:
        """The answer of a request; `None` leaves it to botocore."""
        body: bytes = params["body"]
        try:
            response = self._connections.urlopen(
                "POST", "/", body, self._signed(params["headers"], body), retries=False, decode_content=False
            )
        except HTTPError:
            return None
        return self._final(model, response)

    def _signed(self, headers: Mapping[str, str], body: bytes) -> dict[str, str]:
        """The headers with a signature (Source: AWS IAM User Guide, "Create a signed AWS API request")."""
        credentials = self._credentials.get_frozen_credentials()
        moment = self._now().strftime("%Y%m%dT%H%M%SZ")
        signed = {
            "content-type": headers["Content-Type"],
            "host": self._host,
            "x-amz-date": moment,
            "x-amz-target": headers["X-Amz-Target"],
        }
        if credentials.token:
            signed["x-amz-security-token"] = credentials.token
        names = ";".join(sorted(signed))
        lines = "".join(f"{name}:{signed[name]}\n" for name in sorted(signed))
        canonical = f"POST\n/\n\n{lines}\n{names}\n{sha256(body).hexdigest()}"
        day = moment[:8]
        scope = f"{day}/{self._region}/{_SERVICE}/aws4_request"
        text = f"{_ALGORITHM}\n{moment}\n{scope}\n{sha256(canonical.encode()).hexdigest()}"
        signature = hmac.digest(_signing_key(credentials.secret_key, day, self._region), text.encode(), "sha256").hex()
        proof = (
            f"{_ALGORITHM} Credential={credentials.access_key}/{scope}, SignedHeaders={names}, Signature={signature}"
        )
        return {**headers, **signed, "Authorization": proof}

    def _final(self, model: OperationModel, response: BaseHTTPResponse) -> Answer | None:
        """An answer that a repetition would not change."""
        body, checksum = response.data, response.headers.get("x-amz-crc32")
        if response.status not in {_SUCCESS, _REFUSED} or (checksum is not None and int(checksum) != crc32(body)):
            return None
        received = {
            "status_code": response.status,
            "headers": response.headers,
            "body": body,
            "context": {"operation_name": model.name},
        }
        parsed = self._parser.parse(received, model.output_shape)
        if response.status == _REFUSED:
            if parsed["Error"]["Code"] != _CONDITION_FAILED:
                return None
            # The item that failed the condition.
            service: Any = model.service_model  # the stubs take the code of an error for a number
            parsed |= self._parser.parse(received, service.shape_for_error_code(_CONDITION_FAILED))
        return HttpAnswer(response.status, response.headers), parsed


@lru_cache(maxsize=4)
def _signing_key(secret: str, day: str, region: str) -> bytes:
    """The key of all signatures of a day."""
    key = f"AWS4{secret}".encode()
    for part in (day, region, _SERVICE, "aws4_request"):
        key = hmac.digest(key, part.encode(), "sha256")
    return key
