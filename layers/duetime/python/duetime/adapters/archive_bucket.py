"""The archive in S3: objects of JSON lines, compressed with gzip."""

from __future__ import annotations

import gzip
from typing import TYPE_CHECKING

from duetime.adapters.aws_clients import translated

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mypy_boto3_s3 import S3Client


class ArchiveBucket:
    """`duetime.ports.change_consumers.ArchiveStore` over a bucket."""

    def __init__(self, s3: S3Client, bucket: str) -> None:
        self._s3 = s3
        self._bucket = bucket

    def put(self, key: str, lines: Sequence[str]) -> None:
        """Write an object. The same lines give the same bytes: gzip's timestamp is left out."""
        body = gzip.compress("".join(f"{line}\n" for line in lines).encode(), mtime=0)
        with translated():
            self._s3.put_object(Bucket=self._bucket, Key=key, Body=body)
