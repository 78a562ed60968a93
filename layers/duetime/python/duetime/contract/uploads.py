"""Payload uploads over REST."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Annotated

from pydantic import Field
from typing_extensions import TypedDict  # required by pydantic before Python 3.12

from duetime.contract.http.operation import FOR_A_LEASE, LEASE, Operation, Returns
from duetime.contract.http.request_model import Body
from duetime.contract.http.validation_errors import read_body
from duetime.contract.mapping import response_of
from duetime.contract.tasks.bodies import ContentType, UploadId
from duetime.contract.tasks.responses import Instant
from duetime.domain.limits import MAX_UPLOAD_BYTES
from duetime.domain.operating_parameters import ABANDONED_UPLOAD_DAYS, UPLOAD_LIFE
from duetime.domain.tasks.task import UploadedBytes
from duetime.domain.times import MINUTE
from duetime_common.payload_codecs import OCTET_STREAM

if TYPE_CHECKING:
    from duetime.contract.http.request_json import Document
    from duetime.domain.uploads import SignedUpload, Upload


class UploadCreate(Body):
    """A payload to be uploaded."""

    size: Annotated[
        int, Field(ge=1, le=MAX_UPLOAD_BYTES, description="Size of the payload, in bytes.", examples=[3_000_000])
    ]
    content_type: ContentType = OCTET_STREAM
    id: Annotated[
        UploadId | None,
        Field(
            description="Id of the upload, scoped to the caller; null to generate one. Repeating a request with an id "
            "refers to the same upload."
        ),
    ] = None


class UploadResponse(TypedDict):
    """The request that uploads a payload."""

    id: Annotated[str, Field(description="Id of the upload, for the payload of a task.")]
    method: Annotated[str, Field(description="`PUT`.")]
    url: Annotated[str, Field(description="URL to which the bytes are sent, without API credentials.")]
    headers: Annotated[Mapping[str, str], Field(description="Signed headers that the request must have.")]
    expires_at: Annotated[Instant, Field(description="When the request expires.")]


def new_upload(document: Document) -> tuple[str | None, UploadedBytes]:
    """Decodes the id of an upload, if given, and the size and type of its bytes.

    Raises:
        FieldsInvalid: some fields are invalid.
    """
    body = read_body(UploadCreate, document)
    return body.id, UploadedBytes(body.size, body.content_type)


def upload_response(upload: Upload, signed: SignedUpload) -> UploadResponse:
    """The response for an upload."""
    return response_of(UploadResponse, signed, id=upload.id, method="PUT", headers=dict(signed.headers))


CREATE = Operation(
    "createUpload",
    "POST /v1/uploads",
    "Upload a payload",
    Returns(UploadResponse, "The request that uploads the payload.", status=201),
    description=f"For a binary payload of up to {MAX_UPLOAD_BYTES} bytes. Send its bytes once to the URL in the "
    f"response, within {UPLOAD_LIFE // MINUTE} minutes; a repeated upload gets a 412 response. One task "
    "can then be created with the upload as its payload. An upload without a task is removed after "
    f"{ABANDONED_UPLOAD_DAYS} day.",
    body=UploadCreate,
    headers=(LEASE,),
    errors=FOR_A_LEASE,
)
