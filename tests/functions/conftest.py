"""The functions over moto, or over the embedded engine where moto is not exact enough."""

from __future__ import annotations

from typing import TYPE_CHECKING

import boto3
import pytest
from moto import mock_aws

from duetime import composition
from tests.adapters.clouds import Cloud
from tests.functions.stack import Stack

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def stack() -> Iterator[Stack]:
    """The functions over an empty AWS of moto's."""
    session = boto3.Session("testing", "testing", region_name="us-east-1")
    with mock_aws():
        yield Stack(Cloud(session.client("dynamodb"), session.client("s3"), session.client("sqs")), session)
    composition.use(None)
