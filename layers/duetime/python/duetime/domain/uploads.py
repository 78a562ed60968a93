"""Uploads, which are payloads that a client sends to S3 before it creates their tasks."""

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
"""Name of the only field of a JSON payload that refers to an upload."""
UPLOAD_FIELD = f"payload.{UPLOAD}"
UPLOAD_ID_PATTERN = rf"^[A-Za-z0-9_-]{{1,{MAX_UPLOAD_ID_LENGTH}}}$"
UPLOADS = "uploads/"
"""Key prefix of uploads, which expire unless a task is created with them."""


@frozen
class Upload:
    """An owner's upload.

    Attributes:
        owner: only this owner's tasks can be created with the upload.
        id: id that the client chose; each owner has separate ids.
    """

    owner: str
    id: str

    @property
    def key(self) -> str:
        """The key of the upload's object.

        The key contains a hash of the owner, whose name may have characters that keys should not have.
        """
        return f"{UPLOADS}{hashlib.sha256(self.owner.encode()).hexdigest()[:32]}/{self.id}"


@frozen
class SignedUpload:
    """The signed request that writes an upload.

    Attributes:
        url: URL to which the bytes are sent with `PUT`.
        headers: the signed headers, which the request must contain.
        expires_at: when the signature expires.
    """

    url: str
    headers: Mapping[str, str]
    expires_at: Millis


class UploadMissing(FieldInvalid):
    """A request to create a task names an upload that the owner does not have."""

    def __init__(self) -> None:
        reason = "is not the id of a complete upload; an upload expires, and can be used for one task only"
        super().__init__(UPLOAD_FIELD, reason, FaultCode.NOT_ALLOWED)
