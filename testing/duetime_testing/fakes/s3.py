"""A fake of S3 with in-memory objects."""

from __future__ import annotations

from io import BytesIO
from typing import Any

from duetime_testing.fakes.errors import Exceptions


class FakeS3:
    """An S3 client with in-memory buckets.

    Attributes:
        objects: bytes by bucket and key.
        tags: the tagging of each object, as a query string.
    """

    def __init__(self) -> None:
        self.exceptions = Exceptions()
        self.buckets: set[str] = set()
        self.objects: dict[tuple[str, str], bytes] = {}
        self.tags: dict[tuple[str, str], str] = {}

    def create_bucket(self, *, Bucket: str) -> dict[str, Any]:
        """Create a bucket."""
        self.buckets.add(Bucket)
        return {}

    def put_object(self, *, Bucket: str, Key: str, Body: bytes, Tagging: str = "") -> dict[str, Any]:
        """Write an object."""
        if Bucket not in self.buckets:
            raise self.exceptions.make("NoSuchBucket", "PutObject", Bucket)
        self.objects[Bucket, Key] = Body
        self.tags.pop((Bucket, Key), None)
        if Tagging:
            self.tags[Bucket, Key] = Tagging
        return {}

    def get_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:
        """Read an object."""
        return {"Body": BytesIO(self._object(Bucket, Key, "GetObject"))}

    def copy_object(self, *, Bucket: str, Key: str, CopySource: dict[str, str], **how: str) -> dict[str, Any]:
        """Copy an object."""
        body = self._object(CopySource["Bucket"], CopySource["Key"], "CopyObject")
        self.objects[Bucket, Key] = body
        if how.get("TaggingDirective") == "REPLACE":
            self.tags[Bucket, Key] = how["Tagging"]
        return {}

    def delete_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:
        """Remove an object, if there is one."""
        self.objects.pop((Bucket, Key), None)
        self.tags.pop((Bucket, Key), None)
        return {}

    def list_objects_v2(self, *, Bucket: str, Prefix: str, StartAfter: str, MaxKeys: int) -> dict[str, Any]:
        """List the keys with a prefix in order."""
        keys = sorted(key for bucket, key in self.objects if bucket == Bucket and key.startswith(Prefix))
        found = [{"Key": key} for key in keys if key > StartAfter][:MaxKeys]
        return {"KeyCount": len(found), **({"Contents": found} if found else {})}

    def put_object_tagging(self, *, Bucket: str, Key: str, Tagging: dict[str, Any]) -> dict[str, Any]:
        """Write an object's tags."""
        self._object(Bucket, Key, "PutObjectTagging")
        self.tags[Bucket, Key] = "&".join(f"{tag['Key']}={tag['Value']}" for tag in Tagging["TagSet"])
        return {}

    def get_object_tagging(self, *, Bucket: str, Key: str) -> dict[str, Any]:
        """Read an object's tags."""
        self._object(Bucket, Key, "GetObjectTagging")
        pairs = (pair.split("=", 1) for pair in self.tags.get((Bucket, Key), "").split("&") if pair)
        return {"TagSet": [{"Key": key, "Value": value} for key, value in pairs]}

    def _object(self, bucket: str, key: str, operation: str) -> bytes:
        try:
            return self.objects[bucket, key]
        except KeyError:
            raise self.exceptions.make("NoSuchKey", operation, key) from None
