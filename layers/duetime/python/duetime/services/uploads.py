"""Uploads of payloads that are too large for a request."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.uploads import SignedUpload, Upload

if TYPE_CHECKING:
    from duetime.domain.tasks.task import UploadedBytes
    from duetime.ports.runtime import Runtime
    from duetime.ports.tasks import UploadStore


@dataclass(frozen=True, slots=True)
class Uploads:
    """Begins uploads."""

    store: UploadStore
    runtime: Runtime

    def begin(self, owner: str, upload_id: str | None, content: UploadedBytes) -> tuple[Upload, SignedUpload]:
        """Sign the request with which an owner uploads a payload; nothing is stored yet.

        Args:
            owner: owner of the task that will have the payload.
            upload_id: id that the owner has chosen; `None` for a new one.
            content: size and type of the payload.
        """
        upload = Upload(owner, upload_id or self.runtime.random_source.nonce())
        return upload, self.store.sign(upload, content, self.runtime.now())
