"""Uploads payloads that are too large for an API request to S3, and downloads them from there."""

from __future__ import annotations

import json
from collections.abc import Mapping  # noqa: TC003 - pydantic reads the annotations
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from duetime_client.encryption import encrypted_body
from duetime_client.errors import ClientError
from duetime_client.io_operations import HttpCall, Request
from duetime_client.responses import one
from duetime_client.session import RandomKey
from duetime_client.task import ResponseModel
from duetime_common.limits import MAX_UPLOAD_BYTES
from duetime_common.payload_codecs import CONTENT_TYPE, OCTET_STREAM, Binary, decrypted, value_of

if TYPE_CHECKING:
    from duetime_client.io_operations import Steps
    from duetime_client.session import Session
    from duetime_common.payload_codecs import PayloadCodec

_ID_LENGTH = 40
_UPLOADED_BEFORE = 412


class PayloadTooLarge(ClientError, ValueError):
    """A payload has more bytes than can be uploaded."""

    def __init__(self, size: int) -> None:
        super().__init__(f"the payload has {size} bytes; at most {MAX_UPLOAD_BYTES} can be uploaded")


class _Upload(ResponseModel):
    """The request that uploads a payload."""

    id: str
    url: str
    headers: Mapping[str, str]


def sent_payload(codec: PayloadCodec | None, fields: Mapping[str, object]) -> object:
    """The payload of a create request as it is sent, which is encrypted if the client has a codec."""
    payload = fields.get("payload")
    if codec is None:
        return payload
    body = encrypted_body(codec, {"payload": payload, "target": fields.get("target")})
    return value_of(body["payload"])


def uploaded(session: Session, sent: bytes, payload: object, key: str) -> Steps[dict[str, str]]:
    """Upload a payload, and return the reference to it for the creation of a task.

    Args:
        session: The API.
        sent: The bytes to upload.
        payload: The payload before any encryption, because encrypting it again gives different bytes.
        key: The idempotency key of the create request; if the request is repeated, the upload is the same.

    Raises:
        PayloadTooLarge: The payload has too many bytes.
    """
    if len(sent) > MAX_UPLOAD_BYTES:
        raise PayloadTooLarge(len(sent))
    content_type = sent.content_type if isinstance(sent, Binary) else OCTET_STREAM
    if session.step_keys is not None and isinstance(key, RandomKey):
        # The create request's key will be derived from its body, which contains the upload's id, so the id must not be
        # random.
        key = ""
    plain = payload if isinstance(payload, bytes) else json.dumps(payload, sort_keys=True).encode()
    digest = sha256(b"\0".join((key.encode(), content_type.encode(), plain))).hexdigest()
    body = {"id": digest[:_ID_LENGTH], "size": len(sent), CONTENT_TYPE: content_type}
    upload = yield from session.send(Request("POST", "/v1/uploads", one(_Upload), body=body, repeatable=True))
    call = HttpCall("PUT", upload.url, bytes(sent), upload.headers, is_signed_url=True)
    # S3 rejects a repeated upload, whose id shows that the payload is the same.
    yield from session.exchange(call, accepted=(_UPLOADED_BEFORE,))
    return {"$upload": upload.id}


def downloaded(session: Session, payload: object) -> Steps[Any]:
    """The payload in a response, or the downloaded bytes if the response only links to an uploaded payload."""
    match payload:
        case {"$binary": {"url": str(url), "content_type": str(content_type)}}:
            response = yield from session.exchange(HttpCall("GET", url, None, {}, is_signed_url=True))
            found = Binary(response.content, content_type)
            return found if session.codec is None else decrypted(session.codec, found)
    return payload
