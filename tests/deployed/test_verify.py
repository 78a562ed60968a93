"""A test of a complete run of `duetime verify` against the deployed stack."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from duetime_client.commands.app import app
from duetime_client.verification.findings import Verdict
from duetime_client.verification.session import TAG

if TYPE_CHECKING:
    from pathlib import Path

    from duetime_client import Client
    from duetime_local.demo_receiver import Receiver
    from duetime_local.stack import Stack


@pytest.mark.slow
def test_a_verification_finds_every_guarantee_kept(
    deployed: Stack, client: Client, counter: Receiver, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A quick verification finds all guarantees kept, except one that it does not measure, and leaves no work open."""
    for name, value in deployed.emulator.environ.items():
        monkeypatch.setenv(name, value)
    report = tmp_path / "report.json"
    arguments = ["--url", deployed.ready.api_url, "--yes", "--quick", "--tasks", "6", "--seconds", "2"]
    options = ["--pulled", "pulled", "--http-url", counter.run_url, "--stack", "duetime-local"]
    # A busy machine causes lateness, so `--late-ms` allows half a minute.
    ended = CliRunner().invoke(app, ["verify", *arguments, *options, "--late-ms", "30000", "--json", str(report)])

    assert ended.exit_code == 0, ended.output
    found = json.loads(report.read_text())
    verdicts = {each["guarantee"]: each["verdict"] for each in found["findings"]}
    unmeasured = {guarantee for guarantee, verdict in verdicts.items() if verdict == Verdict.UNMEASURED}
    assert unmeasured == {"on time, sent by the trigger"}
    assert Verdict.FAILED not in verdicts.values()
    assert all(guarantee in ended.stdout for guarantee in verdicts)
    run_id = found["tag"].partition(":")[2]
    assert all(task.is_terminal for task in client.tasks.list(tags={TAG: run_id}))
    assert not [each for each in client.schedules.list() if run_id in each.name]
