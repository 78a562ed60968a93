"""Tests uploads in S3 and the payloads that are created from uploads."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlsplit

import boto3
import httpx
import pytest

from duetime.adapters.aws_clients import Clients
from duetime.adapters.content_store import SplitContentStore
from duetime.adapters.dynamodb import schema
from duetime.adapters.uploads import S3UploadStore
from duetime.domain.errors import ContentExpired
from duetime.domain.operating_parameters import UPLOAD_LIFE
from duetime.domain.tasks.task import Content, ContentPlace, Expiry, UploadedBytes
from duetime.domain.times import DAY, SECOND
from duetime.domain.uploads import Upload
from duetime_common.payload_codecs import Binary, value_in
from tests.adapters.conftest import IMPLEMENTATIONS, cloud_of
from tests.adapters.examples import numbered
from tests.clocks import NOW

if TYPE_CHECKING:
    from duetime_local.emulator import Emulator
    from tests.adapters.clouds import Cloud

TASK = numbered(1)
DATA = b"\x00\xff five megabytes, in short"
UPLOADED = UploadedBytes(len(DATA), "image/png; profile=a")
UPLOAD = Upload("ann", "scan-17")
SOON = Expiry(NOW + DAY, provisional=True)


@pytest.fixture(params=IMPLEMENTATIONS)
def cloud(request: pytest.FixtureRequest) -> Cloud:
    """Return an AWS implementation."""
    return cloud_of(request)


def test_an_upload_becomes_the_payload_of_a_task(cloud: Cloud) -> None:
    """An upload is copied, read as bytes with its content type, kept without the upload, and erased with the task."""
    bucket = cloud.bucket()
    uploads = S3UploadStore(cloud.s3, bucket)
    contents = SplitContentStore(cloud.dynamodb, cloud.table(), cloud.s3, bucket)
    assert uploads.attach(UPLOAD, TASK, SOON) is None
    cloud.s3.put_object(Bucket=bucket, Key=UPLOAD.key, Body=DATA, ContentType=UPLOADED.content_type)
    content = uploads.attach(UPLOAD, TASK, SOON)
    assert content == Content(ContentPlace.OBJECT, UPLOADED.name)
    assert content.uploaded == UPLOADED
    # A lifecycle rule removes the content unless a record refers to it.
    tag = dict(zip(("Key", "Value"), schema.UNREFERENCED_TAG, strict=True))
    assert cloud.s3.get_object_tagging(Bucket=bucket, Key=f"{TASK}/{content.name}")["TagSet"] == [tag]
    uploads.remove(UPLOAD)
    assert uploads.attach(UPLOAD, TASK, SOON) is None
    contents.retain(TASK, content)
    assert contents.expire(TASK, content, SOON)
    read = value_in(contents.fetch(TASK, content))
    assert isinstance(read, Binary)
    assert (read, read.content_type) == (DATA, UPLOADED.content_type)
    contents.erase(TASK, [content])
    with pytest.raises(ContentExpired):
        contents.fetch(TASK, content)


def test_the_name_of_an_uploaded_payload_has_its_size_and_type() -> None:
    """An upload's name has its size and type in safe characters; other contents do not count as uploads."""
    assert UPLOADED.name == "upload.27.aW1hZ2UvcG5nOyBwcm9maWxlPWE"
    assert UploadedBytes.of_name(UPLOADED.name) == UPLOADED
    assert UploadedBytes.of_name("payload.upload.1") is None
    assert Content(ContentPlace.RECORD, UPLOADED.name).uploaded is None


def test_uploads_of_different_owners_are_separate() -> None:
    """The same id refers to a different object for each owner, and no path contains an owner's name."""
    other = Upload("ann/../bob", "scan-17")
    assert other.key != UPLOAD.key
    assert [key.count("/") for key in (UPLOAD.key, other.key)] == [2, 2]


@pytest.mark.engine
def test_the_signed_requests_work_over_http(
    engine_cloud: Cloud, engine: Emulator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A signed request uploads the bytes once, and the payload's link returns them."""
    monkeypatch.setenv("AWS_ENDPOINT_URL", engine.endpoint_url)
    s3 = Clients(boto3.Session("test", "test", region_name="us-east-1")).s3()
    bucket = engine_cloud.bucket()
    uploads = S3UploadStore(s3, bucket)
    contents = SplitContentStore(engine_cloud.dynamodb, engine_cloud.table(), s3, bucket)
    signed = uploads.sign(UPLOAD, UPLOADED, NOW)
    assert httpx.put(signed.url, content=DATA, headers=dict(signed.headers)).status_code == 200
    assert httpx.put(signed.url, content=DATA, headers=dict(signed.headers)).status_code == 412
    longer = dict(signed.headers) | {"Content-Length": str(len(DATA) + 1)}
    assert httpx.put(signed.url, content=DATA + b"!", headers=longer).status_code == 403
    content = uploads.attach(UPLOAD, TASK, SOON)
    assert content is not None
    link = json.loads(contents.fetch_or_link(TASK, content))["$binary"]
    assert (link["size"], link["content_type"]) == (len(DATA), UPLOADED.content_type)
    assert httpx.get(link["url"]).content == DATA


@pytest.mark.parametrize("region", ["us-east-1", "eu-west-1", "cn-north-1"])
def test_upload_requests_are_signed_for_the_configured_address(region: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`DUETIME_UPLOAD_URL` is the prefix of each signed address in every Region, including us-east-1."""
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    session = boto3.Session("AKIDEXAMPLE", "secret", "token", region_name=region)
    s3 = Clients(session).s3()
    suffix = "amazonaws.com.cn" if region.startswith("cn-") else "amazonaws.com"
    allowed = f"https://s3.{region}.{suffix}/contents/"
    assert S3UploadStore(s3, "contents").sign(UPLOAD, UPLOADED, NOW).url.startswith(allowed)
    link = SplitContentStore(Clients(session).dynamodb(), "tasks", s3, "contents").fetch_or_link(
        TASK, Content(ContentPlace.OBJECT, UPLOADED.name)
    )
    assert json.loads(link)["$binary"]["url"].startswith(allowed)


def test_all_limits_of_an_upload_are_signed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Size, type and the condition that the object is new are headers signed with SigV4 for the Region's endpoint."""
    monkeypatch.delenv("AWS_ENDPOINT_URL", raising=False)
    session = boto3.Session("AKIDEXAMPLE", "secret", "token", region_name="eu-west-1")
    signed = S3UploadStore(Clients(session).s3(), "contents").sign(UPLOAD, UPLOADED, NOW)
    url = urlsplit(signed.url)
    query = parse_qs(url.query)
    assert (url.hostname, url.path) == ("s3.eu-west-1.amazonaws.com", f"/contents/{UPLOAD.key}")
    assert query["X-Amz-SignedHeaders"] == ["content-length;content-type;host;if-none-match"]
    assert query["X-Amz-Expires"] == [str(UPLOAD_LIFE // SECOND)]
    assert signed.headers == {
        "Content-Length": str(len(DATA)),
        "Content-Type": UPLOADED.content_type,
        "If-None-Match": "*",
    }
    assert signed.expires_at == NOW + UPLOAD_LIFE
