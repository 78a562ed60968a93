"""Tests that `duetime import` converts other schedulers' files and reports everything that it cannot convert."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import boto3
import pytest
import yaml
from moto import mock_aws

from duetime.contract.schedules.bodies import ScheduleCreate
from duetime.domain.schedules.cron_dialects import Dialect
from duetime.domain.schedules.timing_description import describe_timing
from duetime.domain.schedules.timings import parse_timing
from duetime_client.importers.celery_options import CALL_OPTIONS, ENTRY_KEYS, SETTINGS, TASK_OPTIONS
from duetime_client.topology_validation import validate_topology
from tests.client.test_schedules import deployment as scheduled_deployment

if TYPE_CHECKING:
    from collections.abc import Callable

    from typer.testing import Result

    from tests.client.scheduled import ScheduledDeployment

    Run = Callable[..., Result]

deployment = scheduled_deployment
FILES = Path(__file__).parent / "imported"
EXAMPLES = {
    "celery": ("celery_shop.py", "celeryconfig.py", "celery_styles.py"),
    "eventbridge-scheduler": ("get-schedule.json", "list-schedules.json", "template.yaml"),
    "airflow": ("airflow_orders.py", "airflow_taskflow.py", "airflow_styles.py"),
    "kubernetes-cronjobs": ("cronjobs.yaml", "cronjob-every.yml"),
    "github-actions": ("nightly.yml", "stale.yaml"),
    "quartz": ("quartz_data.xml", "quartz.properties"),
}
ALL = sorted({*EXAMPLES, "crontab"})
Imported = tuple[dict[str, dict[str, Any]], list[dict[str, Any]], int]


@pytest.fixture
def imported(duetime: Run, tmp_path: Path) -> Callable[..., Imported]:
    """Import files, and return the schedules by name, the findings and the exit code."""

    def run(program: str, *arguments: str) -> Imported:
        report = tmp_path / "report.json"
        result = duetime("import", program, *arguments, "--report", str(report))
        assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
        lines = [json.loads(line) for line in result.stdout.splitlines()]
        return {each.pop("name"): each for each in lines}, json.loads(report.read_text()), result.exit_code

    return run


def paths(program: str) -> list[str]:
    """Return the paths of a scheduler's example files."""
    return [str(FILES / name) for name in EXAMPLES[program]]


def texts(findings: list[dict[str, Any]], entry: str) -> dict[str, str]:
    """Return the reasons that the report gives for each part of an entry."""
    return {each["field"]: each["text"] for each in findings if each["entry"] == entry}


@pytest.mark.parametrize("program", sorted(EXAMPLES))
def test_the_api_accepts_every_imported_schedule(program: str, imported: Callable[..., Imported]) -> None:
    """Each imported schedule has valid fields and a timing that duetime's parser accepts, and graphs are valid."""
    schedules, findings, _ = imported(program, *paths(program))
    assert schedules
    for name, fields in schedules.items():
        assert ScheduleCreate.model_validate({"name": name, **fields})
        if "permanent" in fields:
            continue
        timing = {key: fields[key] for key in ("cron", "rate", "interval") if key in fields}
        assert describe_timing(parse_timing(**timing, dialect=Dialect(fields.get("dialect", "cron"))))
        if fields["task"].get("target") == {"kind": "topology"}:
            validate_topology(fields["task"]["payload"])
    assert {each["outcome"] for each in findings} <= {"differs", "not carried over", "not imported"}
    assert all(each["text"] for each in findings)


def test_celery_beat_entries_become_schedules(imported: Callable[..., Imported]) -> None:
    """Arguments get the names of the task's parameters; retries, limits and rate come from the task's decorator."""
    schedules, findings, exit_code = imported("celery", *paths("celery")[:2])
    assert schedules["nightly-report"] == {
        "cron": "30 1 * * *",
        "timezone": "Europe/London",
        "overlap": "allow_all",
        "task": {
            "type": "shop.tasks.send_report",
            "payload": {"kind": "sales", "top": 10},
            "retry": {"max_attempts": 5, "initial_seconds": 1.0, "multiplier": 2, "max_seconds": 600},
            "rate": {"key": "shop.tasks.send_report", "limit": 10, "per_seconds": 60},
            "timeout_seconds": 840,
            "notify_within_seconds": 900,
            "expires_seconds": 7200,
        },
    }
    assert (schedules["sweep"]["rate"], schedules["poll"]["rate"]) == ("10 minutes", "30 seconds")
    assert schedules["friday-the-13th"]["cron"] == "0 0 */4 13 * fri"
    assert schedules["friday-the-13th"]["dialect"] == "spring"
    assert schedules["send_report"]["task"]["type"] == "shop.tasks.send_report"
    assert schedules["send_report"]["task"]["payload"] == {"kind": "stock", "top": 3}
    assert schedules["lights-every-hour"]["task"]["retry"] == {"max_attempts": 1}
    assert (schedules["weekdays"]["cron"], schedules["weekdays"]["timezone"]) == ("0 8,12 * * mon-fri", "Asia/Tokyo")
    omitted = {each["entry"] for each in findings if each["outcome"] == "not imported"}
    assert omitted == {"sunset", "tenant", "half", "quarters"}
    assert exit_code == 1


def test_celery_settings_are_found_in_every_supported_form(imported: Callable[..., Imported]) -> None:
    """Settings in mappings, classes, updates and conditions are read; settings in loops or functions are reported."""
    schedules, findings, _ = imported("celery", str(FILES / "celery_styles.py"))
    assert {name: fields["task"]["type"] for name, fields in schedules.items()} == {
        "annotated": "jobs.common",
        "again": "jobs.common",
        "flask": "jobs.common",
        "class": "jobs.a_class",
        "flask-2": "jobs.flask",
        "debug": "jobs.debug",
        "updated": "jobs.common",
    }
    assert schedules["debug"]["rate"] == "2 minutes"
    omitted = {each["entry"] for each in findings if each["outcome"] == "not imported"}
    assert omitted == {"beat_schedule", "name", "old"}
    conf = texts(findings, "conf")
    assert {"task_ignore_result", "task_soft_time_limit", "update", "broker_url"} <= set(conf)
    assert "hunter2" not in str(findings)


def test_celery_settings_are_reported_without_secrets(imported: Callable[..., Imported]) -> None:
    """Each setting is reported with its counterpart; the broker's address, which contains a password, is not shown."""
    _, findings, _ = imported("celery", *paths("celery")[:2])
    conf = texts(findings, "conf")
    assert conf["task_time_limit"].startswith("1800: `timeout_seconds`")
    assert "import that file, too" in conf["config_from_object"]
    assert conf["broker_url"].startswith("broker_url is set")


def test_a_celery_retry_policy_keeps_its_defaults(imported: Callable[..., Imported], tmp_path: Path) -> None:
    """With `autoretry_for` alone, Celery retries three times with a constant wait of 180 s."""
    file = tmp_path / "tasks.py"
    file.write_text(
        "@app.task(autoretry_for=(OSError,))\ndef a(): ...\n"
        "@app.task(autoretry_for=(OSError,), retry_kwargs={'max_retries': None, 'countdown': 5})\ndef b(): ...\n"
        "app.conf.beat_schedule = {'a': {'task': 'tasks.a', 'schedule': 60}, 'b': {'task': 'tasks.b', 'schedule': 60}}"
    )
    schedules, _, _ = imported("celery", str(file))
    waits = {"initial_seconds": 180, "multiplier": 1, "max_seconds": 180}
    assert schedules["a"]["task"]["retry"] == {"max_attempts": 4, **waits}
    assert schedules["b"]["task"]["retry"] == {
        "max_attempts": 100,
        "initial_seconds": 5,
        "multiplier": 1,
        "max_seconds": 5,
    }


def test_eventbridge_schedules_keep_expression_target_and_input(imported: Callable[..., Imported]) -> None:
    """Schedules in templates are imported, and ARNs that only CloudFormation knows become reported placeholders."""
    schedules, findings, _ = imported("eventbridge-scheduler", *paths("eventbridge-scheduler"))
    assert schedules["nightly"] == {
        "cron": "cron(30 1 ? * MON-FRI *)",
        "dialect": "eventbridge",
        "timezone": "Europe/London",
        "jitter_seconds": 900,
        "start_at": "2026-02-01T00:00:00+00:00",
        "overlap": "allow_all",
        "task": {
            "type": "nightly",
            "target": {"kind": "lambda", "arn": "arn:aws:lambda:eu-west-1:123456789012:function:report"},
            "payload": {"kind": "sales", "at": "<aws.scheduler.scheduled-time>"},
            "retry": {"max_attempts": 4, "max_duration_seconds": 3600},
        },
    }
    assert schedules["remind-7"]["task"]["payload"] == "Dear customer"
    assert "Target.Arn" in texts(findings, "remind-7")
    assert "ScheduleExpressionTimezone" in texts(findings, "remind-7")
    assert schedules["Hourly"]["task"]["target"]["kind"] == "eventbridge"
    assert schedules["Hourly-state"]["task"]["target"]["kind"] == "step_functions"
    assert "Target.InputPath" in texts(findings, "Hourly-state")
    assert "target" not in schedules["Hourly-api"]["task"]
    omitted = {each["entry"] for each in findings if each["outcome"] == "not imported"}
    assert omitted == {"Off", "Uploaded", "Function.Nightly", "remind"}


def test_schedules_and_rules_of_an_aws_account_are_imported(
    imported: Callable[..., Imported], monkeypatch: pytest.MonkeyPatch
) -> None:
    """`--from-account` reads the schedules in all groups, and all rules that have a schedule, with their targets."""
    monkeypatch.setenv("AWS_DEFAULT_REGION", "eu-west-1")
    arn = "arn:aws:sqs:eu-west-1:123456789012:reminders"
    with mock_aws():
        scheduler, events = boto3.client("scheduler"), boto3.client("events")
        scheduler.create_schedule_group(Name="reports")
        for name, group in (("remind", "default"), ("nightly", "reports")):
            scheduler.create_schedule(
                Name=name,
                GroupName=group,
                ScheduleExpression="rate(5 minutes)",
                FlexibleTimeWindow={"Mode": "OFF"},
                Target={"Arn": arn, "RoleArn": "arn:aws:iam::123456789012:role/r", "Input": '{"a": 1}'},
            )
        events.put_rule(Name="hourly", ScheduleExpression="rate(1 hour)")
        events.put_targets(Rule="hourly", Targets=[{"Id": "queue", "Arn": arn}])
        events.put_rule(Name="uploads", EventPattern='{"source": ["aws.s3"]}')
        schedules, findings, exit_code = imported("eventbridge-scheduler", "--from-account")
    assert (set(schedules), exit_code) == ({"remind", "nightly", "hourly"}, 0)
    assert schedules["remind"]["task"]["target"] == {"kind": "sqs", "arn": arn}
    assert schedules["nightly"]["task"]["payload"] == {"a": 1}
    assert "GroupName" in texts(findings, "nightly")


def test_a_simple_dag_becomes_a_graph(imported: Callable[..., Imported]) -> None:
    """`>>`, lists and TaskFlow calls become dependencies; a graph that is built in a loop is reported."""
    schedules, findings, _ = imported("airflow", *paths("airflow")[:2])
    orders = schedules["orders_nightly"]
    assert (orders["cron"], orders["timezone"], orders["overlap"]) == ("30 1 * * *", "Europe/London", "buffer_one")
    nodes = orders["task"]["payload"]["nodes"]
    assert {key: node.get("depends_on") for key, node in nodes.items()} == {
        "wait": None,
        "fetch": ["wait"],
        "left": ["fetch"],
        "right": ["fetch"],
        "report": ["left", "right", "wait"],
    }
    assert (nodes["report"]["trigger_rule"], nodes["left"]["retry"]) == ("all_done", {"max_attempts": 1})
    assert nodes["fetch"]["timeout_seconds"] == 300
    etl = schedules["etl"]["task"]["payload"]["nodes"]
    assert (etl["load"]["depends_on"], etl["load"]["inputs"]) == (["transform"], ["transform"])
    assert (etl["transform"]["depends_on"], etl["transform"]["payload"]) == (["extract"], {"factor": 2})
    assert "for customer in" in texts(findings, "per_customer")["graph"]
    assert schedules["per_customer"]["task"] == {"type": "per_customer"}
    assert (schedules["one"]["dialect"], schedules["one"]["timezone"]) == ("kubernetes", "Asia/Tokyo")
    omitted = {each["entry"] for each in findings if each["outcome"] == "not imported"}
    assert omitted == {"after_orders", "by_hand", "once"}


def graph_of(schedule: dict[str, Any]) -> dict[str, list[str]] | None:
    """Return the parents of each node of a schedule's graph, or `None` if the schedule has no graph."""
    payload = schedule["task"].get("payload", {})
    if "nodes" not in payload:
        return None
    return {key: node.get("depends_on", []) for key, node in payload["nodes"].items()}


def test_unsupported_airflow_styles_become_a_placeholder_and_a_finding(imported: Callable[..., Imported]) -> None:
    """Tasks that only running code can create become a placeholder and a finding, never an incomplete graph."""
    schedules, findings, _ = imported("airflow", str(FILES / "airflow_styles.py"))
    assert {name: graph_of(fields) for name, fields in schedules.items()} == {
        "legacy": {"t1": [], "t2": ["t1"], "t3": ["t2"]},
        "other": None,
        "grouped": None,
        "branching": {"choice": [], "left": ["choice"], "right": ["choice"]},
        "crossed": {"a": [], "b": [], "c": ["a", "b"], "d": ["a", "b"]},
        "cycle": None,
        "comprehension": None,
        "built": None,
        "mapped": None,
    }
    graphs = {each["entry"] for each in findings if each["field"] == "graph" and each["outcome"] == "not carried over"}
    assert graphs == {"grouped", "cycle", "comprehension", "built", "mapped"}
    assert schedules["other"]["task"]["type"] == "other.o1"
    assert schedules["legacy"]["cron"] == "5 0 0 12 * *"
    assert "chooses a branch" in texts(findings, "branching")["choice"]
    assert "right.trigger_rule" in texts(findings, "branching")


def test_cronjobs_keep_their_policies(imported: Callable[..., Imported]) -> None:
    """Concurrency, deadlines and retries are converted, and the container becomes the payload."""
    schedules, findings, _ = imported("kubernetes-cronjobs", *paths("kubernetes-cronjobs"))
    backup = schedules["db-backup"]
    assert (backup["overlap"], backup["catch_up_seconds"], backup["timezone"]) == ("skip", 300, "Europe/Berlin")
    assert backup["task"]["retry"]["max_attempts"] == 3
    assert backup["task"]["payload"]["env"] == {"LEVEL": "info"}
    assert (schedules["sweep"]["timezone"], schedules["sweep"]["overlap"]) == ("Asia/Tokyo", "replace_other")
    assert schedules["poll"]["rate"] == "90s"
    assert {"spec.jobTemplate.spec.template.spec.containers.env.PASSWORD"} <= set(texts(findings, "db-backup"))
    assert {each["entry"] for each in findings if each["outcome"] == "not imported"} == {"paused", "settings"}
    lines = {each["field"]: each["line"] for each in findings if each["entry"] == "db-backup"}
    assert lines["spec.successfulJobsHistoryLimit"] == 15


def test_suspended_entries_are_imported_only_with_an_option(imported: Callable[..., Imported]) -> None:
    """`--with-suspended` imports suspended entries and reports how to pause them, because manifests cannot do that."""
    schedules, findings, _ = imported("kubernetes-cronjobs", str(FILES / "cronjobs.yaml"), "--with-suspended")
    assert schedules["paused"]["cron"] == "@hourly"
    assert "duetime schedules pause paused" in texts(findings, "paused")["spec.suspend"]


def test_each_cron_expression_of_a_workflow_becomes_a_schedule(imported: Callable[..., Imported]) -> None:
    """Each cron expression becomes a schedule and `concurrency` becomes `overlap`; other settings are reported."""
    schedules, findings, exit_code = imported("github-actions", *paths("github-actions"))
    assert (exit_code, sorted(schedules)) == (0, ["nightly", "nightly-2", "stale"])
    assert (schedules["nightly"]["overlap"], schedules["stale"]["overlap"]) == ("cancel_other", "allow_all")
    assert (schedules["nightly-2"]["timezone"], schedules["nightly-2"]["dialect"]) == ("America/New_York", "kubernetes")
    assert {"on.push", "on.workflow_dispatch", "jobs", "permissions", "concurrency"} <= set(texts(findings, "nightly"))


def test_quartz_triggers_are_imported(imported: Callable[..., Imported]) -> None:
    """Cron (with seconds and years), simple and calendar triggers are imported with job and trigger data maps."""
    schedules, findings, _ = imported("quartz", *paths("quartz"), "--timezone", "Europe/Paris")
    nightly = schedules["nightly"]
    assert (nightly["cron"], nightly["timezone"]) == ("15 30 1 ? * 6L 2026-2030", "Europe/London")
    assert nightly["catch_up_seconds"] == 0
    assert nightly["task"] == {
        "type": "Report",
        "retry": {"max_attempts": 1},
        "payload": {"kind": "sales", "top": "10"},
    }
    assert (schedules["poll"]["rate"], schedules["monthly"]["interval"]) == ("10 seconds", "P1M")
    assert schedules["jobs.report.cron"]["cron"] == "0 0/5 8-18 ? * MON-FRI"
    assert schedules["jobs.report.cron"]["timezone"] == "Europe/Paris"
    assert "repeat-interval" in texts(findings, "poll")
    assert {each["entry"] for each in findings if each["outcome"] == "not imported"} == {"once", "Orphan"}


def places(document: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:  # noqa: ANN401 - any document
    """Return the paths of all mappings in a document."""
    found = [path] if isinstance(document, dict) else []
    entries = document.items() if isinstance(document, dict) else enumerate(document)
    for key, each in entries:
        if isinstance(each, dict | list):
            found += places(each, (*path, key))
    return found


@pytest.mark.parametrize(
    ("program", "name"),
    [
        ("kubernetes-cronjobs", "cronjobs.yaml"),
        ("eventbridge-scheduler", "get-schedule.json"),
        ("github-actions", "nightly.yml"),
    ],
)
def test_an_unknown_field_is_never_dropped_silently(
    program: str, name: str, imported: Callable[..., Imported], tmp_path: Path
) -> None:
    """An unknown field at any position appears in the manifest or in the report."""
    text = (FILES / name).read_text()
    file = tmp_path / name
    document = json.loads(text) if name.endswith("json") else next(iter(yaml.load_all(text, yaml.BaseLoader)))
    before, known, _ = imported(program, *[str(FILES / name)])
    for path in places(document):
        if set(path) & {"labels", "resources", "env", "jobs", "permissions", "push", "DeadLetterConfig", "concurrency"}:
            continue
        changed = copy.deepcopy(document)
        place = changed
        for key in path:
            place = place[key]
        place["unheardOf"] = "unheard of"
        file.write_text(json.dumps(changed))
        schedules, findings, _ = imported(program, str(file))
        assert "unheard" in json.dumps([schedules, findings]), path
    assert before
    assert known


BOMB = "a: &a [x,x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"{after}: &{after} [{','.join([f'*{before}'] * 10)}]\n"
    for before, after in zip("abcdefgh", "bcdefghi", strict=True)
)
MERGES = "a: &a {x: 1}\n" + "".join(
    f"{after}: &{after} {{<<: [{','.join([f'*{before}'] * 10)}]}}\n"
    for before, after in zip("abcdefgh", "bcdefghi", strict=True)
)
ENTITIES = '<?xml version="1.0"?><!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]><job-scheduling-data>&a;</job-scheduling-data>'
CONSTANTS = "a0 = [1, 1]\n" + "".join(f"a{n + 1} = [a{n}, a{n}]\n" for n in range(45))
HOSTILE = {
    "binary": b"\x7fELF\x00\x01\x02",
    "latin-1": "# Größe\n".encode("latin-1"),
    "utf-16": "a: 1".encode("utf-16"),
    "empty": b"",
    "huge": b"#" * 4_000_001,
    "bomb": BOMB.encode(),
    "merge bomb": MERGES.encode(),
    "recursive": b"a: &a [*a]\n",
    "deep": b"[" * 100_000,
    "deep mapping": b'{"a":' * 100_000,
    "object": b"!!python/object/apply:os.system ['echo hacked']\n",
    "entities": ENTITIES.encode(),
    "helm": b"{{- if .Values.cron }}\nkind: CronJob\n{{- end }}\n",
    "python 2": b"print 'hello'\n",
    "many operators": b"beat_schedule = " + b"1 + " * 20_000 + b"1\n",
    "constants": (CONSTANTS + "app.conf.beat_schedule = {'a': {'task': 't', 'schedule': 60, 'args': a45}}").encode(),
    "big text": b"app.conf.beat_schedule = {'a': {'task': 'x' * 10**12, 'schedule': 10**400}}\n",
    "wrong shapes": b'{"kind": "CronJob", "metadata": [], "spec": 3, "on": 7, "Name": 5, "Resources": {"a": [1]}}',
    "other shapes": b"[1, null, {Name: a, ScheduleExpression: [1], Targets: {a: 1}, on: {schedule: 3}}]\n",
}


@pytest.mark.parametrize("program", ALL)
@pytest.mark.parametrize("name", sorted(HOSTILE))
def test_a_hostile_file_is_reported_and_not_executed(
    name: str, program: str, imported: Callable[..., Imported], tmp_path: Path
) -> None:
    """A hostile file or entry is reported; nothing in it is executed or expanded, and the import does not crash."""
    file = tmp_path / "file"
    file.write_bytes(HOSTILE[name])
    schedules, findings, exit_code = imported(program, str(file))
    assert (schedules, exit_code) == ({}, 1) or program == "crontab" or (name, program) == ("constants", "celery")
    assert findings or (program == "crontab" and exit_code == 0)


def test_a_missing_file_is_reported_and_other_files_are_imported(
    imported: Callable[..., Imported], tmp_path: Path
) -> None:
    """A missing file is reported, and the other files are still imported."""
    missing = str(tmp_path / "none")
    schedules, findings, exit_code = imported("github-actions", missing, str(FILES / "stale.yaml"))
    assert (set(schedules), exit_code) == ({"stale"}, 1)
    (finding,) = (each for each in findings if each["file"] == missing)
    assert finding["text"].startswith("cannot be read")


def test_an_imported_python_file_is_not_executed(imported: Callable[..., Imported], tmp_path: Path) -> None:
    """A Python file is only parsed; the file would leave a trace if it were imported."""
    trace = tmp_path / "trace"
    file = tmp_path / "app.py"
    file.write_text(f"open({str(trace)!r}, 'w')\napp.conf.beat_schedule = {{'a': {{'task': 't', 'schedule': 60}}}}")
    assert set(imported("celery", str(file))[0]) == {"a"}
    assert not trace.exists()


def test_an_import_is_applied_and_its_report_is_written(
    duetime: Run, deployment: ScheduledDeployment, tmp_path: Path
) -> None:
    """`--apply` does the same as `schedules apply` with the printed file; only a report named .json is JSON."""
    report = tmp_path / "report.txt"
    file = str(FILES / "stale.yaml")
    result = duetime("import", "github-actions", file, "--apply", "--yes", "--prefix", "ci-", "--report", str(report))
    assert (result.exit_code, list(deployment.schedules)) == (0, ["ci-stale"]), result.output
    assert f"{file}:1: stale task: differs: its jobs do not run in duetime" in report.read_text()
    assert duetime("import", "github-actions", file, "--apply", "--dry-run", "--prefix", "x-").exit_code == 0
    assert list(deployment.schedules) == ["ci-stale"]


def test_files_and_account_exclude_each_other(duetime: Run) -> None:
    """Either files or `--from-account` must be given, but not both."""
    assert duetime("import", "eventbridge-scheduler").exit_code == 2
    assert duetime("import", "eventbridge-scheduler", "x.json", "--from-account").exit_code == 2


def test_the_tables_of_celery_options_have_no_empty_cells() -> None:
    """The documented tables of options have no empty cells and cover the options of `beat_schedule`."""
    for table in (TASK_OPTIONS, CALL_OPTIONS, ENTRY_KEYS, SETTINGS):
        assert all(text.strip() for text in table.values())
    assert {"countdown", "eta", "expires", "link", "queue", "priority"} <= set(CALL_OPTIONS)
