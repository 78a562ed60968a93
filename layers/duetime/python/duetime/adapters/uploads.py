"""Stores payload uploads in the bucket for large contents until tasks are created with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from duetime.adapters.aws_clients import translated
from duetime.adapters.content_store import object_of, tag_of
from duetime.domain.operating_parameters import UPLOAD_LIFE
from duetime.domain.tasks.task import Content, ContentPlace, UploadedBytes
from duetime.domain.times import SECOND
from duetime.domain.uploads import SignedUpload

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

    from duetime.domain.ids import TaskId
    from duetime.domain.tasks.task import Expiry
    from duetime.domain.times import Millis
    from duetime.domain.uploads import Upload

_NOT_FOUND = frozenset({"404", "NoSuchKey", "NotFound"})
"""Error codes for a missing object. HeadObject returns no body, so boto3 uses the status as the error code."""


class S3UploadStore:
    """The `duetime.ports.tasks.UploadStore` for an S3 bucket."""

    def __init__(self, s3: S3Client, bucket: str) -> None:
        self._s3 = s3
        self._bucket = bucket

    def sign(self, upload: Upload, content: UploadedBytes, now: Millis) -> SignedUpload:
        """Sign the request that writes an upload of this size and type.

        S3 rejects a different size or type, and a second write.
        """
        url = self._s3.generate_presigned_url(
            ClientMethod="put_object",
            Params={
                "Bucket": self._bucket,
                "Key": upload.key,
                "ContentLength": content.size,
                "ContentType": content.content_type,
                "IfNoneMatch": "*",
            },
            ExpiresIn=UPLOAD_LIFE // SECOND,
            HttpMethod="PUT",
        )
        headers = {
            "Content-Length": str(content.size),
            "Content-Type": content.content_type,
            "If-None-Match": "*",
        }
        return SignedUpload(url, headers, now + UPLOAD_LIFE)

    def attach(self, upload: Upload, task_id: TaskId, expiry: Expiry) -> Content | None:
        """Copy an upload to the contents of a task; `None` if there is no such upload."""
        with translated():
            try:
                found = self._s3.head_object(Bucket=self._bucket, Key=upload.key)
                content = Content(ContentPlace.OBJECT, UploadedBytes(found["ContentLength"], found["ContentType"]).name)
                self._s3.copy_object(
                    Bucket=self._bucket,
                    Key=object_of(task_id, content.name),
                    CopySource={"Bucket": self._bucket, "Key": upload.key},
                    TaggingDirective="REPLACE",
                    Tagging=tag_of(expiry),
                )
            except ClientError as error:
                if error.response["Error"]["Code"] in _NOT_FOUND:
                    return None
                raise
        return content

    def remove(self, upload: Upload) -> None:
        """Remove an upload, if it exists."""
        with translated():
            self._s3.delete_object(Bucket=self._bucket, Key=upload.key)
