"""Reads archive objects from the archive's bucket, or from a folder with a copy of the bucket."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import date
    from pathlib import Path

PREFIX = "archive/"
SUFFIX = ".jsonl.gz"
BUCKET_OUTPUT = "ArchiveBucketName"


@dataclass(frozen=True, slots=True)
class ArchivedObject:
    """The key of an archive object, and its size in bytes."""

    key: str
    size: int


class ArchiveObjects(Protocol):
    """Objects of the archive."""

    def of_day(self, day: date) -> Iterator[ArchivedObject]:
        """List the objects with tasks that ended on a UTC day."""
        ...

    def read(self, key: str) -> bytes:
        """Return the compressed bytes of an object."""
        ...


@dataclass(frozen=True, slots=True)
class BucketObjects:
    """`ArchiveObjects` for a bucket.

    Attributes:
        s3: a botocore client for S3.
        bucket: the bucket's name.
    """

    s3: Any
    bucket: str

    def of_day(self, day: date) -> Iterator[ArchivedObject]:
        """List the objects of a day."""
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=self.bucket, Prefix=prefix_of(day))
        for page in pages:
            yield from (ArchivedObject(each["Key"], each["Size"]) for each in page.get("Contents", []))

    def read(self, key: str) -> bytes:
        """Download an object."""
        body: bytes = self.s3.get_object(Bucket=self.bucket, Key=key)["Body"].read()
        return body


@dataclass(frozen=True, slots=True)
class FolderObjects:
    """`ArchiveObjects` for a folder with a copy of a bucket, or of the bucket's `archive/` prefix."""

    folder: Path

    def of_day(self, day: date) -> Iterator[ArchivedObject]:
        """List the files of a day."""
        root = self.folder / PREFIX if (self.folder / PREFIX).is_dir() else self.folder
        for path in sorted((root / f"day={day.isoformat()}").glob(f"*{SUFFIX}")):
            yield ArchivedObject(str(path), path.stat().st_size)

    def read(self, key: str) -> bytes:
        """Read a file."""
        from pathlib import Path  # noqa: PLC0415 - a key of this class is a path

        return Path(key).read_bytes()


def prefix_of(day: date) -> str:
    """The key prefix of a day's objects."""
    return f"{PREFIX}day={day.isoformat()}/"


def days_between(first: date, last: date) -> list[date]:
    """All days from the first to the last, inclusive."""
    return [first + timedelta(days=number) for number in range((last - first).days + 1)]


def bucket_of(session: Any, stack: str) -> str | None:  # noqa: ANN401 - botocore has no types
    """The name of the archive's bucket, from a CloudFormation stack's outputs; `None` if the stack has no archive."""
    response = session.create_client("cloudformation").describe_stacks(StackName=stack)
    outputs = response["Stacks"][0].get("Outputs", [])
    return next((str(each["OutputValue"]) for each in outputs if each["OutputKey"] == BUCKET_OUTPUT), None)
