"""Tests that `duetime schedules apply` and `import crontab` make schedules match a file and change nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from duetime.contract.schedules.bodies import ScheduleCreate, TaskTemplate
from duetime.contract.tasks.bodies import Retry
from duetime.domain.schedules.cron_dialects import Dialect
from duetime.domain.schedules.timing_description import describe_timing
from duetime.domain.schedules.timings import parse_timing
from duetime_client.importers.crontab import entries_of_crontab
from duetime_client.manifests.differences import RETRY_DEFAULTS, SCHEDULE_DEFAULTS, TASK_DEFAULTS
from duetime_client.manifests.prow import schedule_of_prow
from duetime_client.manifests.reader import ManifestUnreadable, entries_of
from tests.client.deployment import Answer
from tests.client.test_schedules import deployment as scheduled_deployment

if TYPE_CHECKING:
    from collections.abc import Callable

    from pydantic import BaseModel
    from typer.testing import Result

    from duetime_client import Client
    from tests.client.scheduled import ScheduledDeployment

    Run = Callable[..., Result]

deployment = scheduled_deployment
PERIODICS = Path(__file__).parents[3] / "shared" / "data" / "schedules" / "prow-periodics.jsonl"
A = '{"name": "a", "cron": "0 1 * * *", "task": {"type": "report"}}'
B = '{"name": "b", "rate": "1 hour", "task": {"type": "report", "payload": {"x": 1}}}'


@pytest.fixture
def file(tmp_path: Path) -> Callable[[str], str]:
    """Return a function that writes a file and returns its path."""

    def write(text: str) -> str:
        path = tmp_path / "schedules"
        path.write_text(text, encoding="utf-8")
        return str(path)

    return write


def changed(deployment: ScheduledDeployment) -> list[tuple[str, str]]:
    """Return the requests that changed something, by address."""
    found = [(one.method, one.path) for one in deployment.received if one.method != "GET"]
    return sorted((method, path.removeprefix("/stage/v1/")) for method, path in found)


def test_applying_a_file_twice_changes_nothing_the_second_time(
    duetime: Run, deployment: ScheduledDeployment, file: Callable[[str], str]
) -> None:
    """Applying a file creates its schedules; applying the file again changes nothing, despite the API's defaults."""
    path = file(f"{A}\n\n{B}\n")
    first = duetime("schedules", "apply", path, "--yes")
    assert (first.exit_code, changed(deployment)) == (0, [("POST", "schedules")] * 2), first.output
    assert "2 to create" in first.stdout
    deployment.received.clear()
    again = duetime("schedules", "apply", path)
    assert (again.exit_code, changed(deployment)) == (0, []), again.output
    assert "2 unchanged" in again.stdout


def test_only_fields_that_differ_are_shown_and_sent(
    duetime: Run, deployment: ScheduledDeployment, file: Callable[[str], str]
) -> None:
    """Only the fields that differ are sent, with the version that was read; an omitted field gets its default."""
    duetime("schedules", "apply", file(f'{A[:-1]}, "timezone": "Europe/London", "overlap": "allow_all"}}\n{B}'), "-y")
    deployment.received.clear()
    new_b = B.replace('"x": 1', '"x": 2').replace("1 hour", "2 hours")
    result = duetime("schedules", "apply", file(f"{A}\n{new_b}"), "-y")
    assert 'timezone: "Europe/London" → "UTC"' in result.stdout
    assert 'task.payload: {"x": 1} → {"x": 2}' in result.stdout
    sent = {one.path[-1]: one for one in deployment.received if one.method == "PATCH"}
    assert sent["a"].document == {"timezone": "UTC", "overlap": "skip"}
    assert sent["a"].headers["If-Match"] == '"1"'
    assert sent["b"].document == {
        "rate": "2 hours",
        "dialect": "cron",
        "task": {"payload": {"x": 2}},
    }


def test_a_file_can_replace_a_timing_with_another_kind(
    duetime: Run, deployment: ScheduledDeployment, file: Callable[[str], str]
) -> None:
    """An update to another kind of timing does not send the previous kind as null, which the API would refuse."""
    duetime("schedules", "apply", file(A), "-y")
    duetime("schedules", "apply", file(A.replace('"cron": "0 1 * * *"', '"permanent": {"gap_seconds": 60}')), "-y")
    assert deployment.received[-1].document == {"permanent": {"gap_seconds": 60}, "dialect": "cron"}
    deployment.received.clear()
    duetime("schedules", "apply", file(A.replace('"cron": "0 1 * * *"', '"permanent": {"gap_seconds": 60}')), "-y")
    assert changed(deployment) == []


def test_schedules_are_not_deleted_without_prune(
    duetime: Run, deployment: ScheduledDeployment, file: Callable[[str], str]
) -> None:
    """Schedules that a file no longer contains are kept unless pruning is requested."""
    duetime("schedules", "apply", file(f"{A}\n{B}"), "-y")
    duetime("schedules", "apply", file(A), "-y")
    assert sorted(deployment.schedules) == ["a", "b"]
    duetime("schedules", "apply", file(A), "-y", "--prune", "--all")
    assert sorted(deployment.schedules) == ["a"]
    (deleting,) = [request for request in deployment.received if request.method == "DELETE"]
    # A schedule that has changed since the comparison is not deleted.
    assert deleting.headers["If-Match"] == '"1"'


def test_prune_by_tag_deletes_only_schedules_with_the_tag(
    duetime: Run, deployment: ScheduledDeployment, client: Client, file: Callable[[str], str]
) -> None:
    """Pruning by tag keeps schedules without the tag, and schedules whose entries in the file are now invalid."""
    client.schedules.create("others", rate="1 hour", task={"type": "x", "tags": {"team": "ops"}})
    duetime("schedules", "apply", file(f"{A}\n{B}"), "-y", "--tag", "file=ours")
    assert deployment.schedules["a"]["task"]["tags"] == {"file": "ours"}
    broken = '{"name": "a", "cron": "0 1 * * *"}'
    result = duetime("schedules", "apply", file(broken), "-y", "--prune", "--tag", "file=ours")
    assert (sorted(deployment.schedules), result.exit_code) == (["a", "others"], 1)


@pytest.mark.parametrize("options", [["--prune"], ["--all"]])
def test_prune_requires_a_tag_or_all(
    duetime: Run, deployment: ScheduledDeployment, file: Callable[[str], str], options: list[str]
) -> None:
    """Pruning requires a tag or `all`, as in kubectl."""
    assert duetime("schedules", "apply", file(A), "-y", *options).exit_code == 2
    assert deployment.received == []


def test_a_dry_run_is_validated_by_the_api_and_changes_nothing(
    duetime: Run, deployment: ScheduledDeployment, file: Callable[[str], str]
) -> None:
    """A dry run finds an invalid timing although it creates nothing."""
    result = duetime(
        "schedules", "apply", file(f"{A}\n{B}\n{A.replace('a', 'c', 1).replace('0 1 * * *', 'bad')}"), "--dry-run"
    )
    assert (result.exit_code, deployment.schedules) == (1, {}), result.output


def test_apply_changes_nothing_without_confirmation(
    duetime: Run, deployment: ScheduledDeployment, file: Callable[[str], str]
) -> None:
    """Without confirmation, or without a terminal, `apply` changes nothing."""
    path = file(A)
    assert duetime("schedules", "apply", path, typed="n\n").exit_code == 1
    assert duetime("schedules", "apply", path, typed="").exit_code == 1
    assert deployment.schedules == {}
    assert duetime("schedules", "apply", path, typed="y\n").exit_code == 0
    assert list(deployment.schedules) == ["a"]


def test_an_error_in_one_schedule_does_not_stop_the_others(
    duetime: Run, deployment: ScheduledDeployment, file: Callable[[str], str]
) -> None:
    """Each refusal names the line and the field; after a correction, a second run applies the remaining entries."""
    bad = A.replace('"a"', '"bad"').replace("0 1 * * *", "bad")
    lines = [A, bad, '{"cron": "* * * * *"}', "{", B, B]
    result = duetime("schedules", "apply", file("\n".join(lines)), "-y")
    assert (result.exit_code, sorted(deployment.schedules)) == (1, ["a", "b"])
    assert "line 2, bad" in result.stderr
    assert "cron: should have 5 fields" in result.stderr
    assert "line 3" in result.stdout
    assert "line 4" in result.stdout
    assert "line 6" in result.stdout
    again = duetime(
        "schedules", "apply", file("\n".join([A, bad.replace('"bad", "task"', '"0 2 * * *", "task"'), B])), "-y"
    )
    assert (again.exit_code, sorted(deployment.schedules)) == (0, ["a", "b", "bad"]), again.output


def test_remaining_schedules_are_not_tried_if_the_api_is_down(
    duetime: Run, deployment: ScheduledDeployment, file: Callable[[str], str]
) -> None:
    """If the API does not respond, the exit code is 3 and the number of entries left for the next run is printed."""
    deployment.scripted.extend([Answer(200, {"schedules": [], "next_token": None}), *[Answer(None)] * 40])
    many = "\n".join(A.replace('"a"', f'"a{number}"') for number in range(30))
    result = duetime("schedules", "apply", file(many), "-y")
    assert (result.exit_code, "not tried" in result.stderr) == (3, True), result.output


def test_the_result_of_apply_is_printed_as_json(duetime: Run, file: Callable[[str], str]) -> None:
    """With `--json`, the result is one document for scripts."""
    result = duetime(
        "schedules", "apply", file(f'{A}\n{{"name": "z", "cron": "bad", "task": {{"type": "x"}}}}'), "-y", "--json"
    )
    assert json.loads(result.stdout) == {
        "created": ["a"],
        "updated": [],
        "deleted": [],
        "unchanged": [],
        "refused": [{"name": "z", "line": 2, "reasons": ["cron: should have 5 fields"]}],
        "not_tried": [],
    }


def test_payloads_missing_from_a_list_are_read(
    duetime: Run, deployment: ScheduledDeployment, file: Callable[[str], str]
) -> None:
    """A payload that lists leave out is read before payloads are compared."""
    duetime("schedules", "apply", file(B), "-y")
    kept = dict(deployment.schedules["b"])
    entry = {**kept, "task": {name: value for name, value in kept["task"].items() if name != "payload"}}
    deployment.scripted.append(Answer(200, {"schedules": [entry], "next_token": None}))
    deployment.received.clear()
    result = duetime("schedules", "apply", file(B), "-y")
    assert ("1 unchanged" in result.stdout, changed(deployment)) == (True, [])


def test_a_target_that_the_type_determines_is_not_a_difference(
    duetime: Run, deployment: ScheduledDeployment, file: Callable[[str], str]
) -> None:
    """A file may omit the target if the type determines the target."""
    duetime("schedules", "apply", file(A), "-y")
    deployment.schedules["a"]["task"]["target"] = {"kind": "handler"}
    deployment.received.clear()
    assert duetime("schedules", "apply", file(A), "-y").exit_code == 0
    assert changed(deployment) == []


def properties(model: type[BaseModel]) -> dict[str, Any]:
    """Return the fields of a body with the defaults that the API fills in."""
    found: dict[str, Any] = model.model_json_schema()["properties"]
    return found


def test_the_defaults_of_the_command_equal_the_defaults_of_the_api() -> None:
    """The command's defaults equal the contract's defaults."""
    fields, task = properties(ScheduleCreate), properties(TaskTemplate)
    named = {name: fields[name].get("default", []) for name in SCHEDULE_DEFAULTS}
    assert named == SCHEDULE_DEFAULTS
    told = {name: task[name].get("default") for name in TASK_DEFAULTS if name != "tags"}
    assert told == {name: value for name, value in TASK_DEFAULTS.items() if name != "tags"}
    assert set(task) - {"type", "target", "retry", "allow_unknown_type"} == set(TASK_DEFAULTS)
    retry = {name: field["default"] for name, field in properties(Retry).items()}
    assert retry == RETRY_DEFAULTS


YAML = """
# nightly work
- name: a
  cron: 30 1 * * *
  start_at: 2026-12-01T09:00:00Z
  task: &report
    type: report
    payload: {on: "no", at: 22:00}
- name: b
  rate: 5 minutes
  pause_on_failure: true
  task:
    <<: *report
    priority: low
"""


def test_yaml_values_are_read_as_in_json() -> None:
    """Times and `on` are read as text, anchors are supported, and each entry has its line number."""
    first, second = entries_of(YAML)
    assert (first.line, first.name, second.line) == (3, "a", 9)
    assert first.fields == {
        "cron": "30 1 * * *",
        "start_at": "2026-12-01T09:00:00Z",
        "task": {"type": "report", "payload": {"on": "no", "at": "22:00"}},
    }
    assert second.fields["pause_on_failure"] is True
    assert second.fields["task"]["priority"] == "low"
    assert [each.name for each in entries_of("name: a\n---\nname: b\n")] == ["a", "b"]
    assert [each.name for each in entries_of('[{"name": "a"},\n {"name": "b"}]')] == ["a", "b"]
    assert entries_of("\n\n") == []


@pytest.mark.parametrize("text", ["a: [1\n", "a: b: c", "- !!python/object:os.system x", "\t- a", "[" * 5_000])
def test_a_file_that_is_neither_yaml_nor_json_is_rejected(text: str) -> None:
    """A file that is neither YAML nor JSON is refused, and nothing in the file is executed."""
    with pytest.raises(ManifestUnreadable):
        entries_of(text)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("- 5", "should be an object"),
        ("- name: 5", "name: is required"),
        ("- {}", "name: is required"),
        ('{"name": "a"}\n{"name": NaN}', "NaN"),
        ('{"name": "a"}\n{"name": "a"}', "is in line 1, too"),
        ('{"name": "a"}\n[]', "should be an object"),
    ],
)
def test_an_invalid_entry_is_reported_with_its_line(text: str, fault: str) -> None:
    """An invalid entry is reported with its line, and the other entries are still read."""
    *others, last = entries_of(text)
    assert (last.line, fault in last.fault) == (text.count("\n") + 1, True)
    assert [each.fault for each in others] == [""] * len(others)


@pytest.mark.parametrize(
    ("job", "fields"),
    [
        ({"cron": "0 6 * * *"}, {"cron": "0 6 * * *", "dialect": "kubernetes", "overlap": "allow_all"}),
        (
            {"cron": "TZ=Asia/Tokyo 0 9 * * *", "max_concurrency": 1},
            {
                "cron": "0 9 * * *",
                "dialect": "kubernetes",
                "timezone": "Asia/Tokyo",
                "dst_gap": "skip",
                "dst_fold": "both",
                "overlap": "skip",
            },
        ),
        (
            {"cron": "CRON_TZ=Europe/London 0 0 12 * * MON"},
            {
                "cron": "0 0 12 * * MON",
                "dialect": "kubernetes",
                "timezone": "Europe/London",
                "dst_gap": "skip",
                "dst_fold": "both",
                "overlap": "allow_all",
            },
        ),
        ({"cron": "@every 4h"}, {"rate": "4h", "overlap": "allow_all"}),
        ({"cron": "TZ=Asia/Tokyo @every 1h30m"}, {"rate": "1h30m", "overlap": "allow_all"}),
        ({"interval": "4h30m", "max_concurrency": 1}, {"rate": "4h30m", "overlap": "skip"}),
        ({"minimum_interval": "72h"}, {"permanent": {"gap_seconds": 259_200}}),
        (
            {"interval": "1h", "timeout": "1h30m0s"},
            {
                "rate": "1h",
                "overlap": "allow_all",
                "task": {"timeout_seconds": 840, "notify_within_seconds": 5400},
            },
        ),
    ],
)
def test_a_prow_job_becomes_a_schedule(job: dict[str, Any], fields: dict[str, Any]) -> None:
    """An interval between starts becomes a rate, and an interval after each end becomes a permanent schedule."""
    assert schedule_of_prow(job) == fields


def test_prow_jobs_are_applied(duetime: Run, deployment: ScheduledDeployment, file: Callable[[str], str]) -> None:
    """The type comes from an option, and an invalid duration is reported with its line."""
    lines = [
        '{"name": "ci-a", "cron": "0 6 * * *"}',
        '{"name": "ci-b", "interval": "6h"}',
        '{"name": "c", "timeout": "x"}',
    ]
    result = duetime("schedules", "apply", file("\n".join(lines)), "-y", "--format", "prow", "--type", "ci.job")
    assert (result.exit_code, "line 3: c: timeout" in result.stdout) == (1, True)
    assert {name: one["task"]["type"] for name, one in deployment.schedules.items()} == {
        "ci-a": "ci.job",
        "ci-b": "ci.job",
    }
    assert deployment.schedules["ci-b"]["rate"] == "6h"


CRONTAB = r"""
# m h dom mon dow  command
MAILTO="ops@example.org"
SHELL = /bin/bash
*/5 * * * * /usr/bin/poll --fast
  @daily   /usr/local/bin/backup.sh /data > /dev/null 2>&1
CRON_TZ=Europe/London
0 9 * * mon-fri date +\%F; mail -s hello%Dear all,%bye
@reboot /usr/bin/start
* * * *
0 2 * * * /usr/local/bin/backup.sh /data > /dev/null 2>&1
"""


def test_a_crontab_becomes_schedules() -> None:
    """Comments are skipped, variables are kept, `%` is read as cron reads it, and unsupported lines are reported."""
    poll, daily, mail, reboot, short, again = entries_of_crontab(CRONTAB, task_type="shell", timezone="Asia/Tokyo")
    env = {"MAILTO": "ops@example.org", "SHELL": "/bin/bash"}
    assert poll.fields == {
        "cron": "*/5 * * * *",
        "dialect": "vixie",
        "timezone": "Asia/Tokyo",
        "dst_gap": "shift_forward",
        "overlap": "allow_all",
        "task": {"type": "shell", "payload": {"command": "/usr/bin/poll --fast", "env": env}},
    }
    assert (daily.fields["cron"], daily.name.partition("-")[0], daily.line) == ("@daily", "backup.sh", 6)
    assert mail.fields["timezone"] == "Europe/London"
    assert mail.fields["task"]["payload"] == {
        "command": "date +%F; mail -s hello",
        "stdin": "Dear all,\nbye\n",
        "env": env,
    }
    assert ("@reboot" in reboot.fault, reboot.line) == (True, 9)
    assert ("5 fields" in short.fault, short.line) == (True, 10)
    assert again.name == f"{daily.name}-2"


@pytest.mark.parametrize(
    ("command", "stdin"),
    [
        ("cat > /tmp/x%one%two", "one\ntwo\n"),
        ("cat > /tmp/x%one%two%", "one\ntwo\n"),
        ("cat > /tmp/x%one%%", "one\n\n"),
        ("cat > /tmp/x%", "\n"),
        (r"cat > /tmp/x%50\%", "50%\n"),
    ],
)
def test_the_input_of_a_crontab_command_ends_with_a_newline(command: str, stdin: str) -> None:
    """As in Vixie cron, Debian's cron and cronie, the input ends with exactly one newline, as `while read` needs."""
    (entry,) = entries_of_crontab(f"30 1 * * * {command}", task_type="shell", timezone=None)
    assert entry.fields["task"]["payload"] == {"command": "cat > /tmp/x", "stdin": stdin}


def test_a_leading_dash_of_a_crontab_line_is_ignored() -> None:
    """A dash before the minute, which turns off logging in cronie, is not read as part of the time."""
    (entry,) = entries_of_crontab("-*/15 * * * * /usr/bin/poll\n-@daily /usr/bin/x", task_type="shell", timezone=None)[
        :1
    ]
    assert (entry.fields["cron"], entry.fault) == ("*/15 * * * *", "")


def test_a_random_time_of_a_crontab_is_the_same_in_each_import() -> None:
    """`low~high` becomes a value in the range, which is the same in each import but differs between commands."""
    lines = [f"0~59 ~ 5~7 * ~2 /usr/bin/job{number}" for number in range(40)]
    drawn = [entries_of_crontab("\n".join(lines), task_type="shell", timezone=None) for _ in range(2)]
    first, second = ([str(entry.fields["cron"]) for entry in entries] for entries in drawn)
    assert first == second
    values = [tuple(map(int, cron.replace("*", "0").split())) for cron in first]
    assert {month for _, _, _, month, _ in values} == {0}
    assert {day for _, _, day, _, _ in values} == {5, 6, 7}
    assert {weekday for *_, weekday in values} == {0, 1, 2}
    assert all(minute < 60 and hour < 24 for minute, hour, *_ in values)
    assert len({minute for minute, *_ in values}) > 10


@pytest.mark.parametrize("field", ["9~5", "0~60", "~99"])
def test_an_invalid_random_range_of_a_crontab_is_reported(field: str) -> None:
    """An empty range or a range beyond an hour is reported with the line, and never becomes a different time."""
    (entry,) = entries_of_crontab(f"{field} * * * * /usr/bin/x", task_type="shell", timezone=None)
    assert f"{field}: should be a range within 0~59" in (entry.fault or "")


def test_ambiguous_cron_expressions_are_imported_with_the_semantics_of_their_source() -> None:
    """Ambiguous expressions keep the source's meaning: both days must match in this crontab, but either day in Prow."""
    (of_crontab,) = entries_of_crontab("0 0 */2 * 1-5 /usr/bin/x", task_type="shell", timezone=None)
    of_prow = schedule_of_prow({"name": "x", "cron": "0 0 */2 * 1-5"})
    both, either = (
        parse_timing(cron=fields["cron"], dialect=Dialect(fields["dialect"])) for fields in (of_crontab.fields, of_prow)
    )
    assert "if that day is Monday to Friday" in describe_timing(both)
    assert "or on Monday to Friday" in describe_timing(either)


def test_every_real_prow_job_is_accepted() -> None:
    """All periodic jobs in Kubernetes' CI have an accepted timing, except two jobs that a date switches off."""
    if not PERIODICS.exists():
        pytest.skip("the shared data is not beside this checkout")
    jobs = [json.loads(line) for line in PERIODICS.read_text().splitlines()]
    assert len(jobs) == 929
    never = [job for job in jobs if job.get("cron") in {"0 0 30 2 *", "0 0 31 2 *"}]
    assert len(never) == 2
    for job in jobs:
        if job in never:
            continue
        fields = {**schedule_of_prow(job), "task": {"type": "ci.job"}}
        assert ScheduleCreate.model_validate(fields)
        given = {name: fields[name] for name in ("cron", "rate") if name in fields}
        assert "permanent" in fields or parse_timing(**given, dialect=Dialect(fields.get("dialect", "cron")))


def test_a_system_crontab_has_a_user_column() -> None:
    """A system crontab has a user column before the command; a line without the column is refused."""
    first, second = entries_of_crontab(
        "17 * * * * root run-parts /etc/cron.hourly\n@daily root\n", task_type="shell", timezone=None, has_users=True
    )
    assert first.fields["task"]["payload"] == {"command": "run-parts /etc/cron.hourly", "user": "root"}
    assert "a user and a command" in second.fault


def test_unicode_line_separators_stay_in_a_crontab_command() -> None:
    """A form feed, a vertical tab and U+2028 stay in the command, both in the schedule and in the printed lines."""
    command = "a\x0bb\x0cc\u2028d"
    (entry,) = entries_of_crontab(f"0 1 * * * {command}\r\n", task_type="s", timezone=None)
    assert entry.fields["task"]["payload"]["command"] == command
    line = json.dumps({"name": entry.name, **entry.fields}, ensure_ascii=False)
    (again,) = entries_of(f"{line}\r\n")
    assert (again.name, again.fields, again.fault) == (entry.name, entry.fields, "")


def test_a_crontab_variable_with_many_blanks_is_parsed_in_linear_time() -> None:
    """A long run of spaces is parsed in linear time; a regular expression with backtracking took twelve seconds."""
    value = f"x{' ' * 100_000}y"
    (entry,) = entries_of_crontab(f"A =  {value}  \n0 1 * * * a\n", task_type="s", timezone=None)
    assert entry.fields["task"]["payload"]["env"] == {"A": value}


def test_an_imported_name_is_stable_when_line_or_time_changes() -> None:
    """A schedule's name is stable, so a second import updates the schedule instead of creating another schedule."""
    one = entries_of_crontab("0 1 * * * /bin/a x\n", task_type="s", timezone=None)[0]
    other = entries_of_crontab("# new\n0 2 * * * /bin/a x\n", task_type="s", timezone=None)[0]
    assert (one.name, one.fields["cron"]) != (other.name, other.fields["cron"])
    assert one.name == other.name


def test_an_imported_crontab_is_printed_or_applied(
    duetime: Run, deployment: ScheduledDeployment, file: Callable[[str], str]
) -> None:
    """Applying the printed file has the same result as applying the crontab directly."""
    path = file(CRONTAB)
    printed = duetime("import", "crontab", path, "--type", "shell", "--prefix", "host-")
    assert (printed.exit_code, len(printed.stdout.splitlines())) == (1, 4)
    assert "schedules:9" in printed.stderr
    assert "@reboot: has no equivalent" in printed.stderr
    assert "--timezone" in printed.stderr
    direct = duetime("import", "crontab", path, "--type", "shell", "--prefix", "host-", "--apply", "--yes")
    assert (direct.exit_code, len(deployment.schedules)) == (1, 4), direct.output
    deployment.received.clear()
    assert duetime("schedules", "apply", "-", "--yes", typed=printed.stdout).exit_code == 0
    assert changed(deployment) == []
    # Some editors write a byte order mark at the start of a file.
    assert duetime("schedules", "apply", "-", "--yes", typed=f"\ufeff{printed.stdout}").exit_code == 0


def test_a_changed_schedule_is_not_overwritten(
    duetime: Run, deployment: ScheduledDeployment, file: Callable[[str], str]
) -> None:
    """If a schedule was changed after the comparison, the update is rejected."""
    duetime("schedules", "apply", file(A), "-y")
    listed: dict[str, Any] = {"schedules": [dict(deployment.schedules["a"])], "next_token": None}
    deployment.schedules["a"]["version"] = 9
    deployment.scripted.extend([Answer(200, listed), Answer(200, listed["schedules"][0])])
    result = duetime("schedules", "apply", file(A.replace("0 1", "0 2")), "-y")
    assert (result.exit_code, "has changed" in result.stderr) == (1, True), result.output


def test_a_stale_list_neither_duplicates_nor_reverts_schedules(
    duetime: Run, deployment: ScheduledDeployment, file: Callable[[str], str]
) -> None:
    """If the list is stale, a missing schedule is not created again, and an outdated entry does not revert a change."""
    duetime("schedules", "apply", file(A), "-y")
    deployment.scripted.append(Answer(200, {"schedules": [], "next_token": None}))
    assert duetime("schedules", "apply", file(A), "-y").exit_code == 0
    old = {**deployment.schedules["a"], "cron": "0 9 * * *"}
    deployment.scripted.append(Answer(200, {"schedules": [old], "next_token": None}))
    deployment.received.clear()
    result = duetime("schedules", "apply", file(A), "-y")
    assert ("1 unchanged" in result.stdout, changed(deployment)) == (True, [])


def test_a_dry_run_counts_invalid_entries(
    duetime: Run, deployment: ScheduledDeployment, file: Callable[[str], str]
) -> None:
    """A dry run counts entries that the command rejects together with entries that the API rejects."""
    result = duetime("schedules", "apply", file(f'{A}\n{{"name": 3}}'), "--dry-run")

    assert "1 with a valid timing, 1 rejected" in result.stderr
    assert result.exit_code == 1
    assert deployment.schedules == {}
