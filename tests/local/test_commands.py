"""Tests which stack the local stack's commands use."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from duetime_client.commands.app import app
from tests.client.deployment import Deployment, problem, served

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def deployment() -> Iterator[Deployment]:
    """Return an API that responds."""
    with served(Deployment()) as started:
        yield started


def test_the_demo_uses_the_stack_of_the_ready_file_variable(
    deployment: Deployment, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`DUETIME_READY_FILE` names a stack's file that was set with `--ready-file`, and no other stack is started."""
    ready_file = tmp_path / "other.json"
    ready_file.write_text(json.dumps({"api_url": deployment.url, "aws_endpoint_url": "http://x", "pid": os.getpid()}))
    monkeypatch.setenv("DUETIME_READY_FILE", str(ready_file))
    deployment.scripted.append(problem(403, "forbidden", "not for you"))
    done = CliRunner().invoke(app, ["local", "demo", "--count", "1", "--seconds", "1"])
    assert done.exit_code == 1
    assert "not for you" in done.output
    assert len(deployment.received) == 1


def test_the_demo_requires_the_examples_of_a_checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In a project without the example handlers, the demo reports that they are missing before it starts a stack."""
    (tmp_path / "cdk.json").write_text("{}")
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, ["local", "demo", "--ready-file", str(tmp_path / "none.json")])
    assert done.exit_code == 1
    assert "start it in a checkout" in " ".join(done.output.split())
