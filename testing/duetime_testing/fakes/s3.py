"""A fake of S3 with in-memory objects."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any

from duetime_testing.fakes.errors import Exceptions

if TYPE_CHECKING:
    from collections.abc import Mapping

_OCTETS = "binary/octet-stream"
_SIGNED_URL = "https://contents.s3.example/signed/"


class FakeS3:
    """An S3 client with in-memory buckets.

    Attributes:
        objects: the objects' bytes by bucket and key.
        tags: the tags of each object, as a query string.
        content_types: the content types of objects, if set.
    """

    def __init__(self) -> None:
        self.exceptions = Exceptions()
        self.buckets: set[str] = set()
        self.objects: dict[tuple[str, str], bytes] = {}
        self.tags: dict[tuple[str, str], str] = {}
        self.content_types: dict[tuple[str, str], str] = {}
        self._signed: list[tuple[str, dict[str, Any]]] = []

    def create_bucket(self, *, Bucket: str) -> dict[str, Any]:
        """Create a bucket."""
        self.buckets.add(Bucket)
        return {}

    def put_object(
        self, *, Bucket: str, Key: str, Body: bytes, Tagging: str = "", ContentType: str = ""
    ) -> dict[str, Any]:
        """Write an object."""
        if Bucket not in self.buckets:
            raise self.exceptions.make("NoSuchBucket", "PutObject", Bucket)
        self.objects[Bucket, Key] = Body
        self.tags.pop((Bucket, Key), None)
        self.content_types.pop((Bucket, Key), None)
        if Tagging:
            self.tags[Bucket, Key] = Tagging
        if ContentType:
            self.content_types[Bucket, Key] = ContentType
        return {}

    def get_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:
        """Read an object."""
        return {"Body": BytesIO(self._object(Bucket, Key, "GetObject"))}

    def head_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:
        """Read an object's metadata; if the object is missing, the error code is only the HTTP status."""
        if (Bucket, Key) not in self.objects:
            raise self.exceptions.make("404", "HeadObject", "Not Found")
        size, content_type = len(self.objects[Bucket, Key]), self.content_types.get((Bucket, Key), _OCTETS)
        return {"ContentLength": size, "ContentType": content_type}

    def generate_presigned_url(
        self, *, ClientMethod: str, Params: dict[str, Any], ExpiresIn: int, HttpMethod: str = "GET"
    ) -> str:
        """Create a presigned URL that `send_signed` accepts."""
        self._signed.append((HttpMethod, {**Params, "operation": ClientMethod, "seconds": ExpiresIn}))
        return f"{_SIGNED_URL}{len(self._signed) - 1}"

    def send_signed(self, method: str, url: str, headers: Mapping[str, str], body: bytes) -> tuple[int, bytes]:
        """Return S3's status and body for a presigned request; presigned URLs never expire in this fake."""
        wanted_method, wanted = self._signed[int(url.removeprefix(_SIGNED_URL))]
        key = wanted["Bucket"], wanted["Key"]
        if method != wanted_method:
            return 403, b"SignatureDoesNotMatch"
        if method == "GET":
            return (200, self.objects[key]) if key in self.objects else (404, b"NoSuchKey")
        given = {name.lower(): value for name, value in headers.items()}
        signed = {
            "content-length": str(wanted["ContentLength"]),
            "content-type": wanted["ContentType"],
            "if-none-match": wanted["IfNoneMatch"],
        }
        if any(given.get(name) != value for name, value in signed.items()) or len(body) != wanted["ContentLength"]:
            return 403, b"SignatureDoesNotMatch"
        if key in self.objects:
            return 412, b"PreconditionFailed"
        self.objects[key], self.content_types[key] = body, wanted["ContentType"]
        return 200, b""

    def copy_object(self, *, Bucket: str, Key: str, CopySource: dict[str, str], **how: str) -> dict[str, Any]:
        """Copy an object."""
        body = self._object(CopySource["Bucket"], CopySource["Key"], "CopyObject")
        self.objects[Bucket, Key] = body
        if how.get("TaggingDirective") == "REPLACE":
            self.tags[Bucket, Key] = how["Tagging"]
        return {}

    def delete_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:
        """Delete an object if it exists."""
        for kept in (self.objects, self.tags, self.content_types):
            kept.pop((Bucket, Key), None)
        return {}

    def list_objects_v2(self, *, Bucket: str, Prefix: str, StartAfter: str, MaxKeys: int) -> dict[str, Any]:
        """List the keys with a prefix, in order."""
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
