"""Cold-start cost: importing each function, compared with importing boto3 and creating one client."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import TYPE_CHECKING

from bench.paired_timing import Comparison, compare
from duetime.environment_variables import Variable

if TYPE_CHECKING:
    from collections.abc import Iterator

FUNCTIONS = ("api", "trigger", "worker", "deadletter", "egress", "intake")
_BASELINE = "import boto3; boto3.client('dynamodb', region_name='us-east-1')"


def comparisons() -> Iterator[Comparison]:
    """Time each function's import in a new process, interpreter included, with pydantic configured as deployed."""
    for function in FUNCTIONS:
        yield compare(
            f"start {function}",
            lambda function=function: _run(f"import functions.{function}.handler"),  # type: ignore[misc]  # a default
            "start boto3 with one client",
            lambda: _run(_BASELINE),
            pairs=7,
        )


def _run(code: str) -> None:
    environ = {**os.environ, Variable.PYDANTIC_PLUGINS: "__all__"}
    subprocess.run([sys.executable, "-c", code], check=True, env=environ)  # noqa: S603 - our own code
