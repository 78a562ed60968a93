"""Stores the archive in S3, as objects with JSON lines that are compressed with gzip."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

from botocore.exceptions import ClientError

from duetime.adapters.aws_clients import translated
from duetime.adapters.content_store import MISSING
from duetime.domain.archive_objects import KEPT_DAYS_TAG, TASKS_PREFIX, kept_days_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mypy_boto3_s3 import S3Client


class ArchiveBucket:
    """The `duetime.ports.change_consumers.ArchiveStore` that uses a bucket."""

    def __init__(self, s3: S3Client, bucket: str) -> None:
        self._s3 = s3
        self._bucket = bucket

    def put(self, key: str, lines: Sequence[str]) -> None:
        """Write an object, which replaces any object with the same key.

        The same lines result in the same bytes, because gzip's timestamp is left out.
        """
        body = gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0)
        days = kept_days_of(key)
        with translated():
            if days is None:
                self._s3.put_object(Bucket=self._bucket, Key=key, Body=body)
            else:
                self._s3.put_object(Bucket=self._bucket, Key=key, Body=body, Tagging=f"{KEPT_DAYS_TAG}={days}")

    def keys(self, after: str, limit: int) -> Sequence[str]:
        """The next keys, in order, of objects with tasks, starting after the key `after`."""
        with translated():
            page = self._s3.list_objects_v2(Bucket=self._bucket, Prefix=TASKS_PREFIX, StartAfter=after, MaxKeys=limit)
        return [each["Key"] for each in page.get("Contents", ())]

    def lines(self, key: str) -> Sequence[str]:
        """The lines of an object; empty if the object does not exist."""
        with translated():
            try:
                body = self._s3.get_object(Bucket=self._bucket, Key=key)["Body"].read()
            except ClientError as error:
                if error.response["Error"]["Code"] == MISSING:
                    return []
                raise
        return gzip.decompress(body).decode().removesuffix("\n").split("\n")

    def delete(self, key: str) -> None:
        """Delete an object, if it exists."""
        with translated():
            self._s3.delete_object(Bucket=self._bucket, Key=key)
