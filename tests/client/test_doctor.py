"""`duetime doctor` without AWS; with it, see `tests/infra/test_doctor.py`."""

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
    """No credentials and no Region are set."""
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE", "AWS_DEFAULT_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    for name in ("AWS_REGION", "AWS_DEFAULT_REGION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/dev/null")
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")


def test_without_a_region_the_checks_of_aws_are_not_known(duetime: Callable[..., Result], tmp_path: Path) -> None:
    """The missing Region is the problem; every check that needs AWS says so, in the table and in the file."""
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
def test_credentials_that_aws_does_not_take(code: str, seen: str) -> None:
    """Missing, expired and wrong credentials are told apart."""
    ((severity, found, advice),) = checks._judge_credentials({"code": code, "error": "no"})
    assert (severity, seen in found, bool(advice)) == (checks.Severity.PROBLEM, True, True)


def test_a_queue_near_the_most_messages_in_flight() -> None:
    """SQS stops to deliver at 120 000; from 100 000 it is a problem."""
    attributes = {"ApproximateNumberOfMessagesNotVisible": "100000", "RedrivePolicy": "{}"}
    read = {"attributes": {"Q": attributes}, "ages": {}, "redrives": {"Q": True}}
    ((severity, found, _),) = checks._judge_queues(read)
    assert (severity, "100000" in found) == (checks.Severity.PROBLEM, True)


@pytest.mark.parametrize("line", sorted(set(re.findall(r"duetime [a-z][a-z-]+ [a-z][a-z-]*(?: --[a-z-]+)*", SOURCE))))
def test_what_it_advises_exists(line: str) -> None:
    """Each command is one, with these options."""
    words = shlex.split(line)[1:]
    path = max((each for each in COMMANDS if tuple(words[: len(each)]) == each), key=len, default=None)
    assert path is not None, line
    known = {option for parameter in COMMANDS[path][0].params for option in parameter.opts}
    assert {word for word in words if word.startswith("--")} <= known
