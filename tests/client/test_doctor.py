"""Tests `duetime doctor` without AWS; `tests/infra/test_doctor.py` tests the command with AWS."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from duetime_client.doctor import checks
from tests.client.commands import COMMANDS

if TYPE_CHECKING:
    from collections.abc import Callable

    from typer.testing import Result

SOURCE = Path(checks.__file__).read_text(encoding="utf-8")


@pytest.fixture(autouse=True)
def nothing_of_aws(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove all credentials and the Region from the environment."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_DEFAULT_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def test_without_a_region_the_aws_checks_are_marked_as_not_known(
    duetime: Callable[..., Result], tmp_path: Path
) -> None:
    """If no Region is set, the doctor reports this and marks checks that need AWS as not known, in table and file."""
    file = tmp_path / "findings.json"
    ended = duetime("doctor", "--stack", "duetime-dev", "--json", str(file))
    assert ended.exit_code == 1
    document = json.loads(file.read_text())
    found = {each["check"]: each for each in document["findings"]}
    assert document["passed"] is False
    assert found.keys() == {each.name for each in checks.CHECKS}
    assert found["credentials"]["severity"] == "problem"
    assert "AWS_REGION" in found["credentials"]["advice"]
    assert {found[each.name]["severity"] for each in checks.CHECKS[1:] if each.asks} == {"not known"}
    assert "no Region is set" in ended.stdout


@pytest.mark.parametrize(
    ("code", "seen"),
    [
        ("ExpiredToken", "expired"),
        ("NoCredentialsError", "no AWS credentials"),
        ("InvalidClientTokenId", "accept"),
    ],
)
def test_missing_expired_and_wrong_credentials_are_reported_differently(code: str, seen: str) -> None:
    """Missing, expired and wrong credentials are reported differently."""
    ((severity, found, advice),) = checks._judge_credentials({"code": code, "error": "no"})
    assert (severity, seen in found, bool(advice)) == (checks.Severity.PROBLEM, True, True)


def test_a_queue_near_the_limit_of_messages_in_flight_is_reported() -> None:
    """SQS stops delivery at 120,000 messages in flight; the doctor reports a problem at 100,000 or more."""
    attributes = {"ApproximateNumberOfMessagesNotVisible": "100000", "RedrivePolicy": "{}"}
    read = {"attributes": {"Q": attributes}, "ages": {}, "redrives": {"Q": True}}
    ((severity, found, _),) = checks._judge_queues(read)
    assert (severity, "100000" in found) == (checks.Severity.PROBLEM, True)


def test_a_failing_function_is_reported_with_its_log_command() -> None:
    """The log command names the function's configured log group, or Lambda's default group."""
    for logging, group in (({"LogGroup": "/its/own"}, "/its/own"), ({}, "/aws/lambda/duetime-api")):
        configuration = {"FunctionName": "duetime-api", "LoggingConfig": logging}
        sums = {"Errors": {"api": 2.0}, "Throttles": {}, "Invocations": {"api": 9.0}}
        found = {"configurations": {"api": configuration}, "sums": sums, "lines": {}}
        ((_, seen, advice),) = checks._judge_functions(found)
        assert (seen, advice) == (
            "2 of 9 invocations of api failed in 15 minutes",
            f"aws logs tail {group} --since 15m",
        )


@pytest.mark.parametrize(
    ("reserved", "wanted", "severity", "advice"),
    [
        (0, None, checks.Severity.PROBLEM, "aws lambda delete-function-concurrency --function-name f"),
        (0, 20, checks.Severity.PROBLEM, "aws lambda put-function-concurrency --function-name f --reserved-conc"),
        (5, None, checks.Severity.WARNING, "aws lambda delete-function-concurrency --function-name f, or change"),
    ],
)
def test_the_suggested_command_restores_the_reserved_concurrency(
    reserved: int, wanted: int | None, severity: checks.Severity, advice: str
) -> None:
    """The suggested command names the function and restores the reserved concurrency of the template."""
    ((judged, _, found),) = checks._judge_reservations({"api": ("f", reserved, wanted)})
    assert judged is severity
    assert found.startswith(advice)


def test_the_doctor_advises_to_undo_manual_changes_by_hand() -> None:
    """CloudFormation does not apply an unchanged template, so the doctor advises undoing manual changes by hand."""
    tick = {"name": "T", "state": "DISABLED", "expression": "rate(1 minute)", "wanted": "rate(1 minute)"}
    ((_, _, disabled),) = checks._judge_tick([{**tick, "function": "trigger", "known": ["trigger"]}])
    ((_, _, drifted),) = checks._judge_drift({"status": "", "pairs": [("MemorySize of Api", 512, 128)]})
    assert "change it back; see respond-to-an-alarm.md#ticksincomplete" in disabled
    assert "change it back, or change the setting" in drifted


@pytest.mark.parametrize("line", sorted(set(re.findall(r"duetime [a-z][a-z-]+ [a-z][a-z-]*(?: --[a-z-]+)*", SOURCE))))
def test_every_command_suggested_by_the_doctor_exists(line: str) -> None:
    """Each command that the doctor suggests exists and has the suggested options."""
    words = shlex.split(line)[1:]
    path = max((each for each in COMMANDS if tuple(words[: len(each)]) == each), key=len, default=None)
    assert path is not None, line
    known = {option for parameter in COMMANDS[path][0].params for option in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= known
