"""Tests the steps, the questions and the exit codes of `duetime deploy`.

A script that records calls stands in for the CDK's command.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import parse_qs

import pytest
from typer.testing import CliRunner

from duetime_client.cdk_project import ProjectNotFound, StackNotFound, chosen_stack, project_here
from duetime_client.commands.app import app
from infra import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from duetime_local.emulator import Emulator

SCRIPT = """#!/bin/sh
echo "$@" >> calls.txt
test "$1" = "$(cat fails.txt 2> /dev/null)" && exit 1
if test "$1" = synth; then mkdir -p build/deploy && cp manifest.json build/deploy/; fi
exit 0
"""
LOSS = """<member><Type>Resource</Type><ResourceChange><Action>Modify</Action><Replacement>True</Replacement>
<LogicalResourceId>Tasks</LogicalResourceId><PhysicalResourceId>tasks-1</PhysicalResourceId>
<PolicyAction>ReplaceAndDelete</PolicyAction><ResourceType>AWS::DynamoDB::Table</ResourceType></ResourceChange></member>"""
CHANGE = LOSS.replace("AWS::DynamoDB::Table", "AWS::Lambda::Function").replace("True", "False")
NOT_FOUND = "<ErrorResponse><Error><Code>ChangeSetNotFound</Code><Message>none</Message></Error></ErrorResponse>"


@dataclass
class CloudFormation:
    """Responds to `DescribeChangeSet` with the given pages or, if there are no pages, with an error."""

    pages: list[str] = field(default_factory=list)
    status: str = "CREATE_COMPLETE"
    deleted: list[str] = field(default_factory=list)

    def answer(self, request: dict[str, list[str]]) -> tuple[int, str]:
        """Return the response to a request in the query protocol."""
        if request["Action"] == ["DeleteChangeSet"]:
            self.deleted += request["ChangeSetName"]
            return 200, "<DeleteChangeSetResponse><DeleteChangeSetResult/></DeleteChangeSetResponse>"
        if not self.pages:
            return 404, NOT_FOUND
        number = int(request.get("NextToken", ["0"])[0])
        more = f"<NextToken>{number + 1}</NextToken>" if number + 1 < len(self.pages) else ""
        result = f"<Status>{self.status}</Status><Changes>{self.pages[number]}</Changes>{more}"
        wrapped = f"<DescribeChangeSetResult>{result}</DescribeChangeSetResult>"
        return 200, f"<DescribeChangeSetResponse>{wrapped}</DescribeChangeSetResponse>"


@pytest.fixture
def cloudformation(monkeypatch: pytest.MonkeyPatch) -> Iterator[CloudFormation]:
    """Serve CloudFormation's endpoint for the SDK."""
    fake = CloudFormation()

    class Answering(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            status, body = fake.answer(parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode()))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *arguments: object) -> None:
            """Log nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answering)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
    for name, value in {"ACCESS_KEY_ID": "test", "SECRET_ACCESS_KEY": "test", "DEFAULT_REGION": "us-east-1"}.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a project with one stack, and change to its folder."""
    (tmp_path / "cdk.json").write_text("{}")
    artifacts = {"shop": {"type": "aws:cloudformation:stack", "properties": {"stackName": "duetime-shop"}}}
    manifest = {"artifacts": {**artifacts, "shop.assets": {"type": "cdk:asset-manifest"}}}
    (tmp_path / "manifest.json").write_text(json.dumps(manifest))
    command = tmp_path / "node_modules" / ".bin" / "cdk"
    command.parent.mkdir(parents=True)
    command.write_text(SCRIPT)
    command.chmod(0o755)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def deploy(*arguments: str) -> tuple[int, str]:
    """Run the command without a terminal, and return its exit code and its output."""
    done = CliRunner().invoke(app, ["deploy", *arguments])
    return done.exit_code, done.output


def steps(project: Path) -> list[str]:
    """Return the recorded calls to the CDK's command."""
    calls = (project / "calls.txt").read_text().splitlines()
    return [" ".join(word for word in call.split() if word in _STEPS) for call in calls]


_STEPS = {"synth", "diff", "deploy", "prepare-change-set", "execute-change-set"}


def test_changes_are_shown_before_they_are_executed(project: Path, cloudformation: CloudFormation) -> None:
    """The command executes exactly the change set that it has prepared and described for the named environment."""
    cloudformation.pages = [CHANGE]
    code, output = deploy("--yes", "--environment", "prod")
    assert code == 0, output
    assert "changed   AWS::Lambda::Function  Tasks" in output
    assert steps(project) == ["synth", "deploy prepare-change-set", "diff", "deploy execute-change-set"]
    calls = (project / "calls.txt").read_text().splitlines()
    assert "-c env=prod" in calls[0]
    names = [call.split("--change-set-name ")[1].split()[0] for call in calls if "--change-set-name" in call]
    assert len(names) == 2
    assert len(set(names)) == 1
    assert all("duetime-shop" in call for call in calls[1:])


@pytest.mark.parametrize("pages", [[], [""]], ids=["deleted", "failed"])
def test_a_change_set_without_changes_is_deleted(
    project: Path, cloudformation: CloudFormation, pages: list[str]
) -> None:
    """CloudFormation marks a change set without changes as failed; the command deletes it unless the CDK has."""
    cloudformation.pages, cloudformation.status = pages, "FAILED"
    code, output = deploy("--yes")
    assert (code, "nothing to change" in output) == (0, True)
    assert steps(project)[-1] == "deploy prepare-change-set"
    assert len(cloudformation.deleted) == len(pages)


def test_a_change_set_with_only_new_outputs_is_executed(project: Path, cloudformation: CloudFormation) -> None:
    """A change set that only changes outputs is executed."""
    cloudformation.pages = [""]
    code, output = deploy("--yes")
    assert code == 0, output
    assert steps(project)[-1] == "deploy execute-change-set"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--yes"], 3),
        ([], 3),
        (["--yes", "--confirm-loss", "another"], 3),
        (["--confirm-loss", "duetime-shop"], 0),
        (["--dry-run", "--confirm-loss", "duetime-shop"], 0),
    ],
)
def test_a_loss_of_data_requires_the_name_of_the_stack(
    project: Path, cloudformation: CloudFormation, arguments: list[str], code: int
) -> None:
    """`--yes` does not confirm a loss of data; an unconfirmed change set is deleted, so that nobody can execute it."""
    cloudformation.pages = [CHANGE, LOSS]
    ended, output = deploy(*arguments)
    assert ended == code, output
    assert "AWS::DynamoDB::Table tasks-1 is replaced by an empty one, and deleted" in output
    is_deployed = "deploy execute-change-set" in steps(project)
    assert is_deployed == (code == 0 and "--dry-run" not in arguments)
    assert len(cloudformation.deleted) == (0 if is_deployed else 1)


def test_without_a_terminal_the_yes_option_is_required(project: Path, cloudformation: CloudFormation) -> None:
    """Without a terminal, as in a pipeline, the command needs `--yes`, because a question would wait forever."""
    cloudformation.pages = [CHANGE]
    code, output = deploy()
    assert (code, "give --yes" in output) == (3, True)
    assert "deploy execute-change-set" not in steps(project)


@pytest.mark.parametrize("step", ["synth", "deploy"])
def test_an_error_of_the_cdk_ends_the_deployment(project: Path, cloudformation: CloudFormation, step: str) -> None:
    """If a CDK step fails, the CDK has printed the reason, the exit code is 1, and no other step follows."""
    cloudformation.pages = [CHANGE]
    (project / "fails.txt").write_text(step)
    code, output = deploy("--yes")
    assert (code, f"cdk {step} failed" in output) == (1, True)
    assert steps(project)[-1].startswith(step)


def test_the_project_is_found_from_its_subfolders(project: Path) -> None:
    """The project is found in the nearest parent folder; if there is no project, the error says what to do."""
    (project / "handlers" / "shop").mkdir(parents=True)
    assert project_here(project / "handlers" / "shop").folder == project.resolve()
    with pytest.raises(ProjectNotFound, match=r"duetime init"):
        project_here(Path("/"))


def test_one_of_several_stacks_must_be_selected() -> None:
    """If a project has several stacks, the error lists them."""
    assert chosen_stack(["one", "two"], "two") == "two"
    with pytest.raises(StackNotFound, match="choose one with --stack: one, two"):
        chosen_stack(["one", "two"], "")
    with pytest.raises(StackNotFound, match="'three'"):
        chosen_stack(["one", "two"], "three")


APP = """
import json, os, pathlib

out = pathlib.Path(os.environ["CDK_OUTDIR"])
out.mkdir(parents=True, exist_ok=True)
name = json.loads(os.environ["CDK_CONTEXT_JSON"])["env"]
key = {"AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}]}
key["KeySchema"] = [{"AttributeName": "pk", "KeyType": "HASH"}]
table = {"TableName": f"tasks-{name}", "BillingMode": "PAY_PER_REQUEST", **key}
resources = {"Tasks": {"Type": "AWS::DynamoDB::Table", "Properties": table}}
(out / "shop.template.json").write_text(json.dumps({"Resources": resources}))
stack = {"type": "aws:cloudformation:stack", "properties": {"templateFile": "shop.template.json"}}
stack["environment"] = "aws://unknown-account/unknown-region"
(out / "manifest.json").write_text(json.dumps({"version": "36.0.0", "artifacts": {"shop": stack}}))
"""
"""A minimal CDK app for the CDK's command, with a table that is named after the environment."""


@pytest.mark.slow
def test_the_cdk_and_cloudformation_execute_the_confirmed_changes(engine: Emulator, tmp_path: Path) -> None:
    """A stack is created, a deployment without changes does nothing, and a table is only replaced if confirmed."""
    (tmp_path / "cdk.json").write_text(json.dumps({"app": f"{sys.executable} app.py", "versionReporting": False}))
    (tmp_path / "app.py").write_text(APP)
    (tmp_path / "node_modules").symlink_to(ROOT / "node_modules")
    command = [str(Path(sys.executable).with_name("duetime")), "deploy", "--yes", "--environment"]

    def deployed(*arguments: str) -> tuple[int, str]:
        done = subprocess.run(  # noqa: S603 - our own command
            [*command, *arguments],
            cwd=tmp_path,
            env={**os.environ, **engine.environ, "HOME": str(tmp_path), "CDK_DISABLE_CLI_TELEMETRY": "true"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout + done.stderr

    tables = engine.client("dynamodb").list_tables
    code, output = deployed("one")
    assert code == 0, output
    assert "tasks-one" in tables()["TableNames"]
    code, output = deployed("one")
    assert (code, "nothing to change" in output) == (0, True), output
    code, output = deployed("two")
    assert (code, "tasks-one is replaced" in output) == (3, True), output
    assert "tasks-two" not in tables()["TableNames"]
    code, output = deployed("two", "--confirm-loss", "shop")
    assert code == 0, output
    assert "tasks-two" in tables()["TableNames"]
