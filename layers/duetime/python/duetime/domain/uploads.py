"""Uploads: payloads that a client sends to S3 before it creates their tasks."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

from duetime.domain.errors import FaultCode, FieldInvalid
from duetime.domain.limits import MAX_UPLOAD_ID_LENGTH
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.domain.times import Millis

UPLOAD = "$upload"
"""Name of the only field of a payload in JSON that names an upload."""
UPLOAD_FIELD = f"payload.{UPLOAD}"
UPLOAD_ID_PATTERN = rf"^[A-Za-z0-9_-]{{1,{MAX_UPLOAD_ID_LENGTH}}}$"
UPLOADS = "uploads/"
"""Prefix of the keys of uploads, which expire unless a task is created with them."""


@frozen
class Upload:
    """An upload of an owner.

    Attributes:
        owner: only its tasks can be created with it.
        id: chosen by the client; each owner has separate ids.
    """

    owner: str
    id: str

    @property
    def key(self) -> str:
        """The key of its object. An owner's name may have characters that a key should not have."""
        return f"{UPLOADS}{hashlib.sha256(self.owner.encode()).hexdigest()[:32]}/{self.id}"


@frozen
class SignedUpload:
    """The one request that writes an upload.

    Attributes:
        url: where the bytes are sent by `PUT`.
        headers: the headers that the request must have; they are signed.
        expires_at: when it expires.
    """

    url: str
    headers: Mapping[str, str]
    expires_at: Millis


class UploadMissing(FieldInvalid):
    """A creation names an upload that the owner does not have."""

    def __init__(self) -> None:
        reason = "is not the id of a complete upload; an upload expires, and can be used for one task only"
        super().__init__(UPLOAD_FIELD, reason, FaultCode.NOT_ALLOWED)
