"""A test of a complete run of `duetime doctor` against the deployed stack."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from duetime_client.commands.app import app
from duetime_client.doctor.checks import CHECKS, Severity

if TYPE_CHECKING:
    from pathlib import Path

    from duetime_client import Client
    from duetime_local.stack import Stack


@pytest.mark.slow
def test_a_deployed_stack_is_examined(
    deployed: Stack, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stop switch is reported with exit code 1.

    Without the switch, the check of switches is OK, and no check has an unknown result.
    """
    for name, value in deployed.emulator.environ.items():
        monkeypatch.setenv(name, value)
    report = tmp_path / "findings.json"

    def examined() -> tuple[int, dict[str, str], str]:
        arguments = ["doctor", "--url", deployed.ready.api_url, "--stack", "duetime-local", "--json", str(report)]
        ended = CliRunner().invoke(app, arguments)
        findings = json.loads(report.read_text())["findings"]
        return ended.exit_code, {each["check"]: each["severity"] for each in findings}, ended.output

    client.switches.put("type", "never-created", stopped=True, reason="a test of the doctor")
    try:
        code, severities, output = examined()
    finally:
        client.switches.delete("type", "never-created")
    assert code == 1
    assert severities["switches"] == Severity.WARNING
    assert "duetime switches delete type never-created" in " ".join(output.split())
    _, severities, output = examined()
    assert severities["switches"] == Severity.OK
    # Other tests of the session make tasks and functions fail, which causes other findings.
    assert not {Severity.UNKNOWN} & set(severities.values()), output
    cloud = {each.name for each in CHECKS if each.is_for_cloud}
    assert severities.keys() == {each.name for each in CHECKS} - cloud
