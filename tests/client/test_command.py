"""Tests the requests, output and exit codes of `duetime tasks` when scripts use the command."""

from __future__ import annotations

import json
import socket
from typing import TYPE_CHECKING

import pytest

from duetime_client.commands import messages
from tests.client.commands import COMMANDS
from tests.client.deployment import Answer, Deployment, problem

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from typer.testing import Result

    Run = Callable[..., Result]


@pytest.mark.parametrize(
    ("auth", "sent"),
    [
        ("bearer=crm", {"secret": "crm", "scheme": "bearer"}),
        ("X-Api-Key=crm", {"secret": "crm", "scheme": "header", "header": "X-Api-Key"}),
    ],
)
def test_create_sends_the_request_of_the_target(
    duetime: Run, deployment: Deployment, auth: str, sent: dict[str, str]
) -> None:
    """The method, headers and secret's name are sent; an unknown authentication scheme is used as a header's name."""
    duetime(
        *("tasks", "create", "rows", "--http-url=https://example.org/r", "--http-method=PATCH"),
        *("--http-header=Accept=a=b", "--http-header=X-A=1", f"--http-auth={auth}"),
    )
    assert deployment.received[0].document["target"] == {
        "kind": "http",
        "url": "https://example.org/r",
        "method": "PATCH",
        "headers": {"Accept": "a=b", "X-A": "1"},
        "auth": sent,
    }


def test_create_sends_every_option(duetime: Run, deployment: Deployment) -> None:
    """Each option is sent as its API field, and `--json` prints the API's response."""
    options = (
        '--payload={"a": [1, null]} --due-at=2026-12-01T09:00 --priority=high --name=monthly --tag=team=dba '
        "--tag=x=y=z --http-url=https://example.org/r --http-phase=clean --http-phase=rollback --http-query=status "
        "--callback-url=https://example.org/ended --max-attempts=3 --timeout=60 "
        "--notify-within=7200 --rollback-on-failure --idempotency-key=K --json"
    )
    words = options.replace('{"a": [1, null]}', "PAYLOAD").split()
    arguments = [word.replace("PAYLOAD", '{"a": [1, null]}') for word in words]
    result = duetime("tasks", "create", "report", *arguments)
    assert deployment.received[0].document == {
        "type": "report",
        "payload": {"a": [1, None]},
        "due_at": "2026-12-01T09:00:00+09:00",
        "priority": "high",
        "name": "monthly",
        "tags": {"team": "dba", "x": "y=z"},
        "target": {
            "kind": "http",
            "url": "https://example.org/r",
            "phases": ["clean", "rollback"],
            "queries": ["status"],
        },
        "callback_url": "https://example.org/ended",
        "retry": {"max_attempts": 3},
        "timeout_seconds": 60,
        "notify_within_seconds": 7200,
        "rollback_on_failure": True,
    }
    assert deployment.received[0].headers["Idempotency-Key"] == "K"
    assert (result.exit_code, json.loads(result.stdout)) == (0, deployment.tasks["01TASK00000000000000000000"])


@pytest.mark.parametrize(
    ("options", "target"),
    [
        ("--arn=arn:aws:lambda:r:1:function:f", {"kind": "lambda", "arn": "arn:aws:lambda:r:1:function:f"}),
        (
            "--arn=arn:aws:lambda:r:1:function:f --async",
            {"kind": "lambda", "arn": "arn:aws:lambda:r:1:function:f", "mode": "async"},
        ),
        ("--arn=arn:aws:sqs:r:1:q", {"kind": "sqs", "arn": "arn:aws:sqs:r:1:q"}),
        ("--arn=arn:aws:sns:r:1:t", {"kind": "sns", "arn": "arn:aws:sns:r:1:t"}),
        (
            "--arn=arn:aws:events:r:1:event-bus/b --detail-type=due",
            {"kind": "eventbridge", "arn": "arn:aws:events:r:1:event-bus/b", "detail_type": "due"},
        ),
        ("--pull", {"kind": "pull"}),
        ("--definition=nightly", {"kind": "topology", "definition": {"name": "nightly"}}),
        (
            "--definition=nightly@3 -p region=eu --parameter=days=2",
            {
                "kind": "topology",
                "definition": {"name": "nightly", "version": 3, "parameters": {"region": "eu", "days": 2}},
            },
        ),
        ("--approval=60", {"kind": "approval", "timeout_seconds": 60}),
        ("--event=order.paid", {"kind": "wait_for_event", "event": "order.paid"}),
        (
            "--event=order.paid --event-key=o-17 --event-timeout=60 --event-lookback=0 --event-when=payload.amount",
            {
                "kind": "wait_for_event",
                "event": "order.paid",
                "key": "o-17",
                "timeout_seconds": 60,
                "lookback_seconds": 0,
                "when": "payload.amount",
            },
        ),
        (
            "--approval=3600 --on-timeout=reject",
            {"kind": "approval", "timeout_seconds": 3600, "on_timeout": "reject"},
        ),
        (
            "--arn=arn:aws:states:r:1:stateMachine:m",
            {"kind": "step_functions", "arn": "arn:aws:states:r:1:stateMachine:m"},
        ),
        (
            "--arn=arn:aws:lambda:r:1:function:f:live --job",
            {"kind": "lambda", "arn": "arn:aws:lambda:r:1:function:f:live", "mode": "durable"},
        ),
        (
            "--arn=arn:aws:batch:r:1:job-definition/d --job-queue=arn:aws:batch:r:1:job-queue/q",
            {
                "kind": "batch",
                "arn": "arn:aws:batch:r:1:job-definition/d",
                "queue": "arn:aws:batch:r:1:job-queue/q",
            },
        ),
        (
            '--arn=arn:aws:glue:r:1:job/j --job-parameters={"WorkerType":"G.1X"}',
            {"kind": "glue", "arn": "arn:aws:glue:r:1:job/j", "parameters": {"WorkerType": "G.1X"}},
        ),
    ],
)
def test_options_set_each_kind_of_target(
    duetime: Run, deployment: Deployment, options: str, target: dict[str, object]
) -> None:
    """The options for a target are sent as the API's target; one option covers all AWS resources."""
    duetime("tasks", "create", "report", *options.split())
    assert deployment.received[0].document["target"] == target


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ("--arn=reports", "should be the ARN of a Lambda function"),
        ("--arn=arn:aws:sqs:r:1:q --async", "is for Lambda functions"),
        ("--arn=arn:aws:sqs:r:1:q --detail-type=x", "is for event buses"),
        ("--arn=arn:aws:sqs:r:1:q --job", "is for state machines and durable functions"),
        ("--arn=arn:aws:lambda:r:1:function:f --job --async", "not both"),
        ("--arn=arn:aws:batch:r:1:job-definition/d", "needs --job-queue"),
        ("--arn=arn:aws:glue:r:1:job/j --job-parameters=[]", "should be a JSON object"),
        ("--async", "needs --arn"),
        ("--detail-type=x", "needs --arn"),
        ("--arn=arn:aws:sqs:r:1:q --http-url=https://example.org", "not both"),
        ("--pull --http-url=https://example.org", "--http-url or --pull"),
        ("--topology=/nowhere/at/all", "--topology"),
        ("--definition=nightly@latest", "should be NAME or NAME@VERSION"),
        ("--definition=@3", "should be NAME or NAME@VERSION"),
        ("--definition=nightly --parameter=region", "should be NAME=VALUE"),
        ("--parameter=region=eu", "needs --definition"),
        ("--definition=nightly --pull", "--pull or --definition"),
        ("--on-timeout=reject", "needs --approval"),
        ("--event-key=o-17", "needs --event"),
        ("--event=a --approval=60", "--approval or --event"),
        ("--approval=60 --http-url=https://example.org", "--http-url or --approval"),
    ],
)
def test_options_of_another_kind_of_target_are_rejected(
    duetime: Run, deployment: Deployment, options: str, told: str
) -> None:
    """Options for a different kind of target are refused before anything is sent."""
    result = duetime("tasks", "create", "report", *options.split())
    assert (result.exit_code, deployment.received) == (2, [])
    assert told in result.stderr


def test_the_in_option_is_a_delay_by_the_clock_of_the_api(duetime: Run, deployment: Deployment) -> None:
    """`--in` is sent as a delay, so a wrong local clock does not matter."""
    duetime("tasks", "create", "report", "--in", "1h30m")
    duetime("tasks", "create", "report", "--in", "250ms")
    assert [request.document["delay_seconds"] for request in deployment.received] == [5400, 0.25]


def test_a_payload_is_read_from_a_file_or_standard_input(duetime: Run, deployment: Deployment, tmp_path: Path) -> None:
    """The arguments `@file` and `-` are read as JSON in UTF-8."""
    path = tmp_path / "payload.json"
    path.write_text('{"città": 1}', encoding="utf-8")
    duetime("tasks", "create", "report", "--payload", f"@{path}")
    duetime("tasks", "create", "report", "--payload", "-", typed='{"città": 2}')
    assert [request.document["payload"] for request in deployment.received] == [{"città": 1}, {"città": 2}]


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["create"], "TYPE"),
        (["create", "report", "--payload", "{"], "not JSON"),
        (["create", "report", "--payload", "NaN"], "NaN"),
        (["create", "report", "--payload", "[" * 100_000], "--payload"),
        (["create", "report", "--payload", "1" * 5_000], "not JSON"),
        (["create", "report", "--payload", "@/nowhere/at/all"], "No such file"),
        (["create", "report", "--due-at", "tomorrow"], "--due-at"),
        (["create", "report", "--in", "soon"], "--in"),
        (["create", "report", "--in", "5m", "--due-at", "2026-12-01"], "not both"),
        (["create", "report", "--tag", "team"], "key=value"),
        (["create", "report", "--priority", "urgent"], "--priority"),
        (["create", "report", "--url", "nowhere"], "nowhere"),
        (["create", "report", "--http-phase", "clean"], "--http-url"),
        (["create", "report", "--http-query", "status"], "--http-url"),
        (["create", "report", "--http-url", "https://example.org", "--http-phase", "run"], "--http-phase"),
        (["create", "report", "--http-method", "POST"], "--http-url"),
        (["create", "report", "--http-header", "A=b"], "--http-url"),
        (["create", "report", "--http-auth", "bearer=crm"], "--http-url"),
        (["create", "report", "--http-url", "https://example.org", "--http-auth", "crm"], "SCHEME=SECRET"),
        (["create", "report", "--http-url", "https://example.org", "--http-method", "TRACE"], "--http-method"),
        (["notify", "x"], "--fence"),
        (["notify", "x", "--fence", "1", "--result", "{"], "--result"),
        (["notify", "x", "--fence", "1", "--result", "1", "--error", "Boom"], "not both"),
        (["notify", "x", "--fence", "1", "--message", "no"], "--error"),
        (["notify", "x", "--fence", "1", "--unretriable"], "--error"),
        (["progress", "x", "101", "--fence", "1"], "PERCENT"),
        (["progress", "x", "--fence", "1"], "PERCENT"),
        (["update", "x"], "nothing to update"),
        (["list", "--limit", "0"], "--limit"),
    ],
)
def test_a_usage_error_is_reported_and_nothing_is_sent(
    duetime: Run, deployment: Deployment, arguments: list[str], reason: str
) -> None:
    """A usage error exits with code 2, names the mistake and sends nothing."""
    result = duetime("tasks", *arguments)
    assert (result.exit_code, result.stdout, deployment.received) == (2, "", [])
    assert reason in result.stderr
    assert "Traceback" not in result.stderr


def test_without_an_address_the_error_names_the_option_and_variable(
    duetime: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without an address, the error names both ways to set an address."""
    monkeypatch.delenv("DUETIME_URL")
    monkeypatch.setenv("DUETIME_CONTEXTS", str(tmp_path / "contexts.json"))
    monkeypatch.chdir(tmp_path)
    result = duetime("tasks", "list")
    assert result.exit_code == 2
    assert "--url" in result.stderr
    assert "DUETIME_URL" in result.stderr


def test_get_prints_the_json_of_the_api(duetime: Run, deployment: Deployment) -> None:
    """`--json` prints the API's JSON, including unknown fields and all characters."""
    document = {"id": "x", "state": "new state", "type": "t", "created_at": "2026-11-21T12:00:00Z", "later": "né\ud800"}
    deployment.tasks["x"] = {**document, "due_at": "2026-11-21T12:00:00Z", "version": 1}
    result = duetime("tasks", "get", "x", "--json")
    assert json.loads(result.stdout) == deployment.tasks["x"]
    deployment.tasks["x"]["later"] = "né"
    assert '"né"' in duetime("tasks", "get", "x", "--json").stdout


def test_list_prints_one_array_up_to_the_limit(duetime: Run) -> None:
    """A list printed as JSON is one array across all pages, up to the limit."""
    for number in range(5):
        duetime("tasks", "create", "report", "--name", str(number))
    names = [task["name"] for task in json.loads(duetime("tasks", "list", "--json", "--limit", "3").stdout)]
    assert names == ["0", "1", "2"]
    assert len(json.loads(duetime("tasks", "list", "--json", "--all").stdout)) == 5


def test_an_empty_list_is_printed_as_an_empty_array(duetime: Run) -> None:
    """An empty list is printed as an empty array, so scripts need no special case."""
    assert json.loads(duetime("tasks", "list", "--json").stdout) == []


def test_list_sends_every_filter(duetime: Run, deployment: Deployment) -> None:
    """Each filter option is sent as its API parameter."""
    words = "--state failed --type t --name n --tag a=b --due-after 2026-11-21T09:00 --due-before 2026-11-22T00:00Z"
    parent = "01M7YJJ6RJ000VK12BGKK15FQ0"
    words += " --created-after 2026-11-20T00:00Z --created-before 2026-11-23T00:00Z --finished-after 2026-11-21T00:00Z"
    words += " --finished-before 2026-11-22T00:00Z --schedule s --include-nodes --order desc --order-by finished_at"
    words += " --name-contains part --error-contains oom"
    duetime("tasks", "list", *words.split(), "--parent", parent, "--limit", "500")
    assert deployment.received[0].query == {
        "created_after": ["2026-11-20T09:00:00+09:00"],
        "created_before": ["2026-11-23T09:00:00+09:00"],
        "finished_after": ["2026-11-21T09:00:00+09:00"],
        "finished_before": ["2026-11-22T09:00:00+09:00"],
        "schedule": ["s"],
        "include_nodes": ["true"],
        "order_by": ["finished_at"],
        "parent": [parent],
        "state": ["failed"],
        "type": ["t"],
        "name": ["n"],
        "name_contains": ["part"],
        "error_contains": ["oom"],
        "tag": ["a:b"],
        "due_after": ["2026-11-21T09:00:00+09:00"],
        "due_before": ["2026-11-22T09:00:00+09:00"],
        "order": ["desc"],
        "limit": ["100"],
    }


def test_an_update_with_an_outdated_version_is_rejected(duetime: Run, deployment: Deployment) -> None:
    """`--if-match` takes a version; the second of two updates with the same version is rejected."""
    duetime("tasks", "create", "report")
    (task_id,) = deployment.tasks
    first = duetime("tasks", "update", task_id, "--name", "a", "--if-match", "1", "--json")
    second = duetime("tasks", "update", task_id, "--name", "b", "--if-match", "1")
    assert (first.exit_code, json.loads(first.stdout)["name"]) == (0, "a")
    assert second.exit_code == 1
    assert "the task has changed" in second.stderr


def test_cancel_prints_the_cancelled_task(duetime: Run, deployment: Deployment) -> None:
    """Cancelling a task prints the cancelled task."""
    duetime("tasks", "create", "report")
    (task_id,) = deployment.tasks
    assert json.loads(duetime("tasks", "cancel", task_id, "--json").stdout)["state"] == "cancelled"


def test_children_are_listed_and_cancelled_with_their_parent(duetime: Run, deployment: Deployment) -> None:
    """`--parent-task-id` lists a task's children, and `--children` also cancels them, but only with the parent's id."""
    duetime("tasks", "create", "report")
    (task_id,) = deployment.tasks
    assert duetime("tasks", "list", "--parent-task-id", task_id).exit_code == 0
    assert deployment.received[-1].query["parent_task_id"] == [task_id]
    assert duetime("tasks", "cancel", task_id, "--children").exit_code == 0
    assert deployment.received[-1].document == {"include_children": True}
    refused = duetime("tasks", "cancel", "--all", "--children", "--yes")
    assert (refused.exit_code, "goes with an ID" in refused.stderr) == (2, True)


def test_an_unknown_type_can_be_allowed_with_an_option(duetime: Run, deployment: Deployment) -> None:
    """The request allows an unknown task type only if `--allow-unknown-type` is given."""
    assert duetime("tasks", "create", "later", "--allow-unknown-type").exit_code == 0
    assert deployment.received[-1].document == {"type": "later", "allow_unknown_type": True}
    assert duetime("tasks", "create", "later").exit_code == 0
    assert deployment.received[-1].document == {"type": "later"}


@pytest.mark.parametrize(
    ("state", "exit_code"), [("succeeded", 0), ("failed", 1), ("cancelled", 1), ("rolled_back", 1)]
)
def test_create_with_wait_prints_the_ended_task(
    duetime: Run, deployment: Deployment, state: str, exit_code: int
) -> None:
    """`--wait` prints the ended task; the exit code is 0 only if the task succeeded."""
    deployment.states.extend(["scheduled", "running", state])
    result = duetime("tasks", "create", "report", "--wait", "--json")
    assert (result.exit_code, json.loads(result.stdout)["state"]) == (exit_code, state)


def test_an_interrupted_wait_still_prints_the_id(duetime: Run, deployment: Deployment) -> None:
    """The id of the created task is printed even if the wait is interrupted."""
    created = Answer(201, deployment.create({"type": "report"}, "K"))
    deployment.scripted.extend([created, problem(403, "forbidden", "not yours")])
    result = duetime("tasks", "create", "report", "--wait")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr.startswith(f"created {created.document['id']}\nerror: not yours")


def test_each_rejected_field_is_printed_on_a_separate_line(duetime: Run, deployment: Deployment) -> None:
    """An API error is one line plus a line per rejected field; standard output is empty, and the exit code is 1."""
    refused = {"field": "type", "reason": "at most 64 characters"}
    deployment.scripted.append(problem(422, "fields_invalid", "type: at most 64 characters", refused))
    result = duetime("tasks", "create", "report")
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == ("error: title of fields_invalid (422 fields_invalid)\n  type: at most 64 characters\n")


@pytest.mark.parametrize(
    ("field", "shown"),
    [
        ("priority", "priority (--priority)"),
        ("tags.team", "tags.team (--tag)"),
        ("timeout_seconds", "timeout_seconds (--timeout)"),
        ("target.url", "target.url (--http-url)"),
        ("target.method", "target.method (--http-method)"),
        ("target.headers.Host", "target.headers.Host (--http-header)"),
        ("target.auth.secret", "target.auth.secret (--http-auth)"),
        ("target.arn", "target.arn (--arn)"),
        ("notify_on.late_seconds", "notify_on.late_seconds (--notify-late)"),
        ("notify_on.running_seconds", "notify_on.running_seconds (--notify-running)"),
        ("payload", "payload (--payload)"),
        ("cron", "cron"),
        ("", ""),
    ],
)
def test_the_error_for_a_rejected_field_names_its_option(
    duetime: Run, deployment: Deployment, field: str, shown: str
) -> None:
    """The error for a rejected field names the option that sets the field, or the field itself if no option exists."""
    deployment.scripted.append(problem(422, "fields_invalid", "no", {"field": field, "reason": "is not right"}))
    result = duetime("tasks", "create", "report")
    assert result.stderr.splitlines()[1] == f"  {shown}: is not right"


def test_every_option_named_in_an_error_exists() -> None:
    """Every option that replaces a field's name in an error is an option of a command."""
    known = {option for command, _ in COMMANDS.values() for each in command.params for option in each.opts}
    assert set(messages._OPTIONS.values()) <= known


def test_a_missing_task_is_reported_on_one_line(duetime: Run) -> None:
    """An unknown id is reported without a traceback."""
    result = duetime("tasks", "get", "nope")
    assert (result.exit_code, result.stderr) == (1, "error: there is no task nope (404 task_not_found)\n")


def test_an_unreachable_api_has_a_separate_exit_code(duetime: Run) -> None:
    """The exit code for an unreachable API differs from the exit code for a rejection."""
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
    result = duetime("tasks", "list", "--url", f"http://127.0.0.1:{port}")
    assert (result.exit_code, result.stdout) == (3, "")
    assert result.stderr.startswith(f"error: cannot reach http://127.0.0.1:{port}: ")
    assert result.stderr.count("\n") == 1


def test_a_response_from_another_server_is_reported_on_one_line(duetime: Run, deployment: Deployment) -> None:
    """A response from a server other than duetime's API is reported as such."""
    deployment.scripted.append(Answer(200, text=b"<html>", content_type="text/html"))
    result = duetime("tasks", "list")
    assert result.exit_code == 1
    assert result.stderr.startswith("error: no page of tasks in the response: GET http://")
