"""Compares the time to import and to initialize functions with the time to import boto3 and create one client."""

from __future__ import annotations

import os
import subprocess
import sys
from types import MappingProxyType
from typing import TYPE_CHECKING

from bench.paired_timing import Comparison, compare
from duetime.environment_variables import Variable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

FUNCTIONS = ("api", "trigger", "worker", "deadletter", "egress", "intake")
_QUEUE = "https://sqs.eu-west-1.amazonaws.com/123456789012"
ENVIRONMENT: dict[str, str] = {
    Variable.REGION: "us-east-1",
    "AWS_DEFAULT_REGION": "us-east-1",
    "AWS_ACCESS_KEY_ID": "AKIAEXAMPLE",
    "AWS_SECRET_ACCESS_KEY": "secret",
    Variable.SERVICE_NAME: "duetime",
    Variable.METRICS_NAMESPACE: "duetime",
    Variable.TABLE: "table",
    Variable.BUCKET: "bucket",
    Variable.ARCHIVE_BUCKET: "archive",
    Variable.SHARDS: "1",
    Variable.WATCH_URL: "wss://example.com/live",
    Variable.INTAKE_OWNER: "intake",
    Variable.INTAKE_REJECTS: f"{_QUEUE}/rejects",
    **dict.fromkeys((Variable.QUEUE_HIGH, Variable.QUEUE_NORMAL, Variable.QUEUE_LOW), f"{_QUEUE}/queue"),
    Variable.PYDANTIC_PLUGINS: "__all__",
}
"""The environment variables that at least one function needs to start."""
_BASELINE = "import boto3; boto3.client('dynamodb', region_name='us-east-1')"


def comparisons() -> Iterator[Comparison]:
    """Time the imports and the initialization of each function in a new process, including the interpreter's start."""
    for function in FUNCTIONS:
        code = f"import functions.{function}.handler"
        for what, variables in (("start", {}), ("initialize", {Variable.FUNCTION_NAME: "duetime"})):
            yield compare(
                f"{what} {function}",
                lambda code=code, variables=variables: _run(code, variables),  # type: ignore[misc]  # defaults
                "start boto3 with one client",
                lambda: _run(_BASELINE),
                pairs=7,
            )


def _run(code: str, variables: Mapping[str, str] = MappingProxyType({})) -> None:
    environ = {**os.environ, **ENVIRONMENT, **variables}
    subprocess.run([sys.executable, "-c", code], check=True, env=environ)  # noqa: S603 - our own code
