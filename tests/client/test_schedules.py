"""Tests requests for schedules and calendars from Python and from the command line."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from duetime_client import Client, Conflict, NotFound, Schedule, TimeWithoutZone, UnexpectedResponse
from tests.client.deployment import Answer, problem, served
from tests.client.scheduled import ScheduledDeployment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from typer.testing import Result

    from duetime_client.task_request_fields import NewTask

    Run = Callable[..., Result]

NOON = datetime(2026, 11, 21, 12, tzinfo=UTC)


@pytest.fixture
def deployment() -> Iterator[ScheduledDeployment]:
    """Return a separate deployment with schedules for each test."""
    with served(ScheduledDeployment()) as made:
        yield made


def nightly(client: Client, name: str = "nightly") -> Schedule:
    """Create a schedule."""
    return client.schedules.create(name, cron="30 1 * * *", timezone="Europe/London", task={"type": "report"})


def test_a_schedule_is_created_read_changed_and_deleted(client: Client, deployment: ScheduledDeployment) -> None:
    """Requests match the contract, times are sent with offsets, and responses have types."""
    made = client.schedules.create("nightly", rate="1 hour", start_at=NOON, task={"type": "report"})
    assert deployment.received[0].document == {
        "name": "nightly",
        "rate": "1 hour",
        "start_at": "2026-11-21T12:00:00+00:00",
        "task": {"type": "report"},
    }
    assert (made.name, made.state, made.timing, made.etag) == ("nightly", "active", "rate 1 hour", '"1"')
    changed = client.schedules.update("nightly", if_match=made.etag, cron="0 2 * * *", end_at=None)
    assert (deployment.received[1].document, changed.timing) == ({"cron": "0 2 * * *", "end_at": None}, "0 2 * * *")
    assert client.schedules.get("nightly").upcoming[1].note == "uk: 2026-11-23 (Holiday): skipped"
    assert client.schedules.delete("nightly").name == "nightly"
    with pytest.raises(NotFound) as missing:
        client.schedules.get("nightly")
    assert missing.value.code == "schedule_not_found"


def test_a_schedule_request_is_resent_with_its_key_after_a_lost_response(
    client: Client, deployment: ScheduledDeployment
) -> None:
    """With an idempotency key, a repeated creation, run or backfill happens only once."""
    nightly(client)
    calls = (
        lambda: client.schedules.create("other", rate="1 hour", task={"type": "report"}),
        lambda: client.schedules.run("nightly"),
        lambda: client.schedules.create_backfill("nightly", "2026-11-01T00:00:00Z", NOON),
    )
    for call in calls:
        deployment.received.clear()
        deployment.scripted.append(Answer(None))
        call()
        first, second = (each.headers["Idempotency-Key"] for each in deployment.received)
        assert first == second


def test_replacing_or_deleting_a_calendar_sends_its_etag(client: Client, deployment: ScheduledDeployment) -> None:
    """Replacing or deleting a calendar sends the ETag that was read."""
    client.calendars.put("uk", weekdays=["sat"])
    read = client.calendars.get("uk")
    assert read.etag == '"1"'
    client.calendars.put("uk", if_match=read.etag, weekdays=["sun"])
    client.calendars.delete("uk", if_match=read.etag)
    assert [each.headers.get("If-Match") for each in deployment.received] == [None, None, '"1"', '"1"']


def test_a_name_that_is_taken_is_a_conflict(client: Client) -> None:
    """A creation never overwrites an existing schedule."""
    nightly(client)
    with pytest.raises(Conflict) as taken:
        nightly(client)
    assert taken.value.code == "schedule_exists"


def test_schedules_are_listed_page_by_page(client: Client, deployment: ScheduledDeployment) -> None:
    """Five schedules are listed with three requests."""
    for name in "edcba":
        nightly(client, name)
    assert [each.name for each in client.schedules.list(state="active")] == list("abcde")
    assert [request.query for request in deployment.received[5:]] == [
        {"state": ["active"]},
        {"state": ["active"], "next_token": ["2"]},
        {"state": ["active"], "next_token": ["4"]},
    ]


def test_a_list_of_schedules_is_filtered_by_the_api(
    client: Client, duetime: Run, deployment: ScheduledDeployment
) -> None:
    """The client and the command send states, type, tags and name prefix as the same parameters."""
    wanted = {"state": ["active", "paused"], "type": ["mail"], "tag": ["a:1", "b:2"], "name_prefix": ["n"]}
    tags = {"a": "1", "b": "2"}
    list(client.schedules.list(state=["active", "paused"], type="mail", tags=tags, name_prefix="n"))
    states = ("--state", "active", "--state", "paused")
    duetime("schedules", "list", *states, "--type", "mail", "--tag", "a=1", "--tag", "b=2", "--name-prefix", "n")
    assert [{name: request.query[name] for name in wanted} for request in deployment.received] == [wanted] * 2


def test_a_run_on_request_sends_only_the_given_fields(
    client: Client, duetime: Run, deployment: ScheduledDeployment
) -> None:
    """A request for a run contains only the given fields, which can include a null payload."""
    nightly(client)
    client.schedules.run("nightly", payload=None, delay_seconds=1.5)
    client.schedules.run("nightly", due_at=NOON, reason="why")
    client.schedules.run("nightly")
    duetime("schedules", "run", "nightly", "--payload", '{"a": 1}', "--at", "2026-11-22T01:00Z")
    assert [request.document if request.body else None for request in deployment.received[1:]] == [
        {"payload": None, "delay_seconds": 1.5},
        {"due_at": NOON.isoformat(), "reason": "why"},
        None,
        {"payload": {"a": 1}, "due_at": "2026-11-22T10:00:00+09:00"},
    ]


def test_a_schedule_is_paused_resumed_run_and_backfilled(client: Client, deployment: ScheduledDeployment) -> None:
    """Each action on a schedule is sent to a separate path with the action's parameters."""
    nightly(client)
    assert client.schedules.pause("nightly", "no paper").paused_reason == "no paper"
    assert client.schedules.resume("nightly").state == "active"
    assert client.schedules.run("nightly").type == "report"
    client.schedules.create_backfill("nightly", "2026-11-01T00:00:00Z", NOON, per_minute=6)
    assert [request.path for request in deployment.received[1:]] == [
        f"/stage/v1/schedules/nightly/{action}" for action in ("pause", "resume", "run", "backfills")
    ]
    assert deployment.received[-1].document == {
        "scheduled_after": "2026-11-01T00:00:00Z",
        "scheduled_before": "2026-11-21T12:00:00+00:00",
        "per_minute": 6,
    }


def test_all_schedules_with_a_tag_are_paused_and_resumed(
    duetime: Run, client: Client, deployment: ScheduledDeployment
) -> None:
    """The client and the command pause and resume by tag; the command takes either a schedule or a tag."""
    paused = duetime("schedules", "pause", "--of-tag", "team=dba", "--reason", "a release")
    assert "2 paused, 9 scanned" in paused.stdout
    assert deployment.received[-1].document == {"filter": {"tags": {"team": "dba"}}, "reason": "a release"}
    assert sum(each.affected for each in client.schedules.resume_by_tag({"team": "dba"})) == 2
    assert deployment.received[-1].path.endswith("/v1/schedules/resume")
    for words in ([], ["nightly", "--of-tag", "team=dba"], ["--of-tag", "team=dba", "--if-match", '"1"']):
        assert duetime("schedules", "resume", *words).exit_code == 2


def test_a_backfill_is_cancelled_by_its_id(duetime: Run, client: Client, deployment: ScheduledDeployment) -> None:
    """A backfill's view shows its id and progress."""
    nightly(client)
    assert "1a2b running: 3 of 19 runs started" in duetime("schedules", "show", "nightly").stdout
    assert duetime("schedules", "backfills", "cancel", "nightly", "1a2b").exit_code == 0
    last = deployment.received[-1]
    assert (last.method, last.path) == ("DELETE", "/stage/v1/schedules/nightly/backfills/1a2b")
    assert "1a2b running: 3 of 19" in duetime("schedules", "backfills", "list", "nightly").stdout
    assert "1a2b running: 3 of 19" in duetime("schedules", "backfills", "show", "nightly", "1a2b").stdout
    period = ("--after", "2026-11-01T00:00Z", "--before", "2026-11-20T00:00Z")
    made = duetime("schedules", "backfills", "create", "nightly", *period, "--per-minute", "6", "--json")
    assert json.loads(made.stdout)["id"] == "1a2b"
    assert client.schedules.get_backfill("nightly", "1a2b").runs_started == 3
    assert [each.id for each in client.schedules.list_backfills("nightly")] == ["1a2b"]


def test_occurrences_are_returned_with_their_tasks(client: Client, deployment: ScheduledDeployment) -> None:
    """Bounds and limit are sent with the parameter names in the contract."""
    nightly(client)
    past, coming = client.schedules.list_occurrences("nightly", scheduled_after=NOON, limit=2)
    assert (past.task_id, past.state, coming.task_id, coming.runs) == ("01TASK", "succeeded", None, False)
    assert deployment.received[-1].query == {"scheduled_after": ["2026-11-21T12:00:00+00:00"], "limit": ["2"]}


def test_a_preview_creates_nothing(client: Client, deployment: ScheduledDeployment) -> None:
    """A preview is retried after a failure, because it changes nothing."""
    deployment.scripted.append(Answer(None))
    found = client.schedules.preview(cron="30 1 * * *", start=NOON, count=2)
    assert (len(found), deployment.schedules) == (2, {})
    assert deployment.received[-1].document == {
        "cron": "30 1 * * *",
        "from": "2026-11-21T12:00:00+00:00",
        "count": 2,
    }


def test_a_time_without_a_time_zone_is_rejected(client: Client, deployment: ScheduledDeployment) -> None:
    """A time without a time zone is refused before anything is sent."""
    with pytest.raises(TimeWithoutZone):
        client.schedules.create_backfill("nightly", NOON.replace(tzinfo=None), NOON)
    assert deployment.received == []


def test_a_calendar_is_sent_as_fields_or_as_a_file(client: Client, deployment: ScheduledDeployment) -> None:
    """Fields are sent as JSON, and an iCalendar file is sent unchanged with its own content type."""
    client.calendars.put("weekends", weekdays=["sat", "sun"])
    data = b"BEGIN:VCALENDAR\r\nEND:VCALENDAR\r\n"
    assert client.calendars.put_icalendar("uk", data, mode="includes", timezone="Europe/London").dates == {
        "2026-12-25": "Christmas Day"
    }
    sent = deployment.received[-1]
    assert (sent.body, sent.headers["Content-Type"]) == (data, "text/calendar")
    assert sent.query == {"mode": ["includes"], "timezone": ["Europe/London"]}
    assert [each.name for each in client.calendars.list()] == ["uk", "weekends"]
    assert client.calendars.get("weekends").weekdays == ["sat", "sun"]
    ends = [each.known_until and each.known_until.isoformat() for each in client.calendars.list()]
    assert ends == ["2028-11-22T23:00:00+00:00", None]
    assert client.calendars.delete("uk").name == "uk"


def test_the_dialect_of_an_ambiguous_timing_is_shown(duetime: Run, client: Client) -> None:
    """The dialect is shown only if the expression would have a different meaning in another dialect."""
    task: NewTask = {"type": "report"}
    client.schedules.create("a", cron="0 0 */2 * 1-5", dialect="vixie", task=task)
    client.schedules.create("b", cron="cron(0 10 * * ? *)", dialect="eventbridge", task=task)
    client.schedules.create("c", cron="0 0 * * 1-5", task=task)
    shown = [duetime("schedules", "show", name).stdout for name in "abc"]
    whens = ["vixie 0 0 */2 * 1-5 (UTC)", "cron(0 10 * * ? *) (UTC)", "0 0 * * 1-5 (UTC)"]
    assert [when in text for when, text in zip(whens, shown, strict=True)] == [True] * 3
    assert "cron 0 0 * * 1-5" not in shown[2]


def test_calendars_show_until_when_they_are_known(duetime: Run, client: Client) -> None:
    """The list and the detail view show the date until which a calendar is known, or "always"."""
    client.calendars.put("weekends", weekdays=["sat", "sun"])
    client.calendars.put_icalendar("uk", b"BEGIN:VCALENDAR\r\nEND:VCALENDAR\r\n")
    listed = duetime("calendars", "list").stdout
    assert [line.split()[-1] for line in listed.splitlines()] == ["until", "2028-11-22T23:00Z", "always"]
    shown = [duetime("calendars", "show", name).stdout for name in ("uk", "weekends")]
    assert ["known until  2028-11-22T23:00Z" in shown[0], "known until  always" in shown[1]] == [True, True]


@pytest.mark.parametrize("document", [None, [], {"schedules": 1}, {"schedules": [{"id": "x"}]}])
def test_a_response_from_another_server_is_an_error(
    client: Client, deployment: ScheduledDeployment, document: object
) -> None:
    """A response from another server is not mistaken for an empty list."""
    deployment.scripted.append(Answer(200, document))
    with pytest.raises(UnexpectedResponse):
        list(client.schedules.list())


def test_create_sends_every_option(duetime: Run, deployment: ScheduledDeployment) -> None:
    """Each option of `schedules create` is sent as its API field."""
    options = [
        *("--cron", "30 1 * * *", "--timezone", "Europe/London", "--dst-gap", "shift_forward", "--dst-fold", "both"),
        *(
            "--calendar",
            "uk",
            "--calendar",
            "weekends",
            "--on-excluded",
            "previous_day",
            "--jitter",
            "5m",
            "--runs",
            "7",
        ),
        *("--start", "2026-12-01T09:00", "--end", "none", "--overlap", "allow_all", "--catch-up", "2h"),
        *("--expect-success-by", "06:00", "--expect-every", "2h", "--catch-up-mode", "all", "--spread", "10m"),
        *("--expect-duration-factor", "2.5"),
        *("--extra-date", "2026-12-27T12:00", "--exclude-date", "2026-12-25", "--exclude-date", "2026-12-26"),
        *("--pause-on-failure", "--payload", '{"a": 1}', "--tag", "team=dba", "--timeout", "30", "--lock", "db"),
    ]
    result = duetime("schedules", "create", "nightly", "report", *options, "--json")
    assert deployment.received[0].document == {
        "name": "nightly",
        "cron": "30 1 * * *",
        "timezone": "Europe/London",
        "dst_gap": "shift_forward",
        "dst_fold": "both",
        "calendars": ["uk", "weekends"],
        "on_excluded": "previous_day",
        "extra_dates": ["2026-12-27T12:00"],
        "excluded_dates": ["2026-12-25", "2026-12-26"],
        "spread_seconds": 600,
        "jitter_seconds": 300,
        "remaining_runs": 7,
        "start_at": "2026-12-01T09:00:00+09:00",
        "end_at": None,
        "overlap": "allow_all",
        "catch_up_seconds": 7200,
        "catch_up_mode": "all",
        "pause_on_failure": True,
        "expect_success_by": "06:00",
        "expect_every_seconds": 7200,
        "expect_duration_factor": 2.5,
        "task": {
            "type": "report",
            "payload": {"a": 1},
            "tags": {"team": "dba"},
            "timeout_seconds": 30,
            "lock": {"key": "db"},
        },
    }
    assert (result.exit_code, json.loads(result.stdout)["name"]) == (0, "nightly")


def test_a_schedule_has_every_option_of_a_task(duetime: Run, deployment: ScheduledDeployment) -> None:
    """A schedule accepts the options of a task, such as name, AWS target and callback URL."""
    options = ("--name", "n", "--arn", "arn:aws:sqs:r:1:q", "--callback-url", "https://example.org/e")
    assert duetime("schedules", "create", "x", "report", "--rate", "1 hour", *options).exit_code == 0
    assert deployment.received[0].document["task"] == {
        "type": "report",
        "name": "n",
        "target": {"kind": "sqs", "arn": "arn:aws:sqs:r:1:q"},
        "callback_url": "https://example.org/e",
    }


@pytest.mark.parametrize(
    ("options", "sent"),
    [
        (["--rate", "5 minutes"], {"rate": "5 minutes"}),
        (["--interval", "PT1H"], {"interval": "PT1H"}),
        (["--date", "2026-12-24T09:00:00", "--date", "2026-12-31T09:00:00"], {"dates": 2}),
        (["--permanent", "1m"], {"permanent": {"gap_seconds": 60}}),
        (["--cron", "cron(0 10 * * ? *)", "--dialect", "eventbridge"], {"dialect": "eventbridge"}),
    ],
)
def test_every_kind_of_timing_has_an_option(
    duetime: Run, deployment: ScheduledDeployment, options: list[str], sent: dict[str, object]
) -> None:
    """Options set each of five kinds of timing, and the dialect."""
    assert duetime("schedules", "create", "x", "report", *options).exit_code == 0
    document = deployment.received[0].document
    assert {key: len(document[key]) if key == "dates" else document[key] for key in sent} == sent


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["create", "x"], "TYPE"),
        (["create", "x", "t", "--permanent", "soon"], "--permanent"),
        (["create", "x", "t", "--jitter", "250ms"], "whole seconds"),
        (["create", "x", "t", "--runs", "many"], "--runs"),
        (["create", "x", "t", "--start", "tomorrow"], "--start"),
        (["create", "x", "t", "--overlap", "queue"], "--overlap"),
        (["update", "x"], "nothing to update"),
        (["backfills", "create", "x"], "--after"),
        (["occurrences", "x", "--after", "then"], "--after"),
        (["preview", "--count", "0"], "--count"),
        (["list", "--state", "running"], "--state"),
    ],
)
def test_a_bad_command_line_sends_nothing(
    duetime: Run, deployment: ScheduledDeployment, arguments: list[str], reason: str
) -> None:
    """A bad command line exits with code 2 and names the wrong word."""
    result = duetime("schedules", *arguments)
    assert (result.exit_code, reason in result.stderr, deployment.received) == (2, True, [])


def test_an_update_sends_only_the_task_fields_of_its_options(duetime: Run, deployment: ScheduledDeployment) -> None:
    """An update sends only the given fields and reads nothing first, because the API merges the fields."""
    create = ("--cron", "* * * * *", "--payload", "1", "--timeout", "30")
    duetime("schedules", "create", "x", "report", *create)
    assert duetime("schedules", "update", "x", "--payload", "2", "--no-calendars").exit_code == 0
    sent = deployment.received[-1]
    assert sent.document == {"task": {"payload": 2}, "calendars": []}
    assert ("If-Match" in sent.headers, len(deployment.received)) == (False, 2)
    duetime("schedules", "update", "x", "--rate", "1 hour", "--if-match", "2", "--reason", "too often")
    assert deployment.received[-1].query == {"reason": ["too often"]}
    assert (deployment.received[-1].document, deployment.received[-1].headers["If-Match"]) == (
        {"rate": "1 hour"},
        '"2"',
    )


def test_a_list_shows_the_next_run_in_local_time(duetime: Run, client: Client) -> None:
    """A user in Tokyo sees times in Tokyo's time zone, and the timing as written."""
    nightly(client)
    client.schedules.create("tick", rate="30 seconds", task={"type": "tick"})
    client.schedules.pause("tick")
    shown = duetime("schedules", "list").stdout.splitlines()
    assert shown[0].split() == ["name", "state", "next", "run", "when", "zone", "type"]
    assert "22 Nov 10:30" in shown[1]
    assert "30 1 * * *" in shown[1]
    assert "paused" in shown[2]


def test_the_view_of_a_schedule_shows_next_and_skipped_runs(duetime: Run, client: Client) -> None:
    """The next runs are shown in local time, and skipped runs are shown with the reasons."""
    nightly(client)
    shown = duetime("schedules", "show", "nightly").stdout
    assert "30 1 * * * (Europe/London)" in shown
    assert "2026-11-22 10:30:00 JST" in shown
    assert "Holiday" in shown
    assert "the run of 01TASK is still running" in shown


def test_a_missed_expectation_is_shown(duetime: Run, client: Client, deployment: ScheduledDeployment) -> None:
    """The list marks a missed expectation until the next success; the view says since when and how many were missed."""
    nightly(client)
    schedule = deployment.schedules["nightly"]
    schedule["expectation"] = {"missed_at": "2026-11-21T06:00:00.000Z", "met_at": None, "misses": 2}
    assert "active, missed" in duetime("schedules", "list").stdout
    shown = duetime("schedules", "show", "nightly").stdout
    assert "2026-11-21 15:00:00 JST" in shown
    assert "2 times in all" in shown
    schedule["expectation"]["met_at"] = "2026-11-21T07:00:00.000Z"
    assert "active, missed" not in duetime("schedules", "list").stdout


def test_an_expectation_is_removed_with_the_value_none(
    duetime: Run, client: Client, deployment: ScheduledDeployment
) -> None:
    """The options for expectations accept `none`, which is sent as null, and refuse an invalid duration."""
    nightly(client)
    duetime("schedules", "update", "nightly", "--expect-success-by", "none", "--expect-every", "none")
    assert deployment.received[-1].document == {"expect_success_by": None, "expect_every_seconds": None}
    before = len(deployment.received)
    assert duetime("schedules", "update", "nightly", "--expect-every", "often").exit_code != 0
    assert len(deployment.received) == before


def test_a_preview_shows_whether_each_occurrence_will_run(duetime: Run) -> None:
    """Each previewed occurrence is shown with the local time and whether it will run."""
    shown = duetime("schedules", "preview", "--cron", "30 1 * * *").stdout.splitlines()
    assert shown[0].split() == ["time", "decision"]
    assert "uk: 2026-11-23 (Holiday): skipped" in shown[2]
    assert "runs: uk: 22:00 to 08:00: moved" in shown[3]


def test_occurrences_are_shown_with_their_tasks(duetime: Run, client: Client) -> None:
    """Each occurrence is shown with its task and state, or with the reason why there is no task."""
    nightly(client)
    shown = duetime("schedules", "occurrences", "nightly", "--after", "2026-11-21").stdout.splitlines()
    assert shown[1].split()[-2:] == ["01TASK", "succeeded"]
    assert "Holiday" in shown[2]


@pytest.mark.parametrize("action", ["pause", "resume", "run", "delete --yes"])
def test_an_action_on_an_unknown_schedule_fails(duetime: Run, action: str) -> None:
    """For an unknown schedule, an action prints the API's message and exits with code 1."""
    result = duetime("schedules", *action.split(), "nobody")
    assert (result.exit_code, "no such schedule" in result.stderr) == (1, True)


def test_the_format_of_a_calendar_file_is_determined_by_its_extension(
    duetime: Run, deployment: ScheduledDeployment, tmp_path: Path
) -> None:
    """An .ics file is sent unchanged; any other file is read as JSON."""
    ics, fields = tmp_path / "uk.ics", tmp_path / "weekends.json"
    ics.write_bytes(b"BEGIN:VCALENDAR\r\n")
    fields.write_text('{"name": "ignored", "weekdays": ["sat", "sun"]}')
    assert "2026-12-25 Christmas Day" in duetime("calendars", "put", "uk", str(ics), "--timezone", "UTC").stdout
    assert deployment.received[-1].body == b"BEGIN:VCALENDAR\r\n"
    assert "sat sun" in duetime("calendars", "put", "weekends", str(fields)).stdout
    assert deployment.received[-1].document == {"weekdays": ["sat", "sun"]}
    assert duetime("calendars", "list").stdout.splitlines()[0].split()[:3] == ["name", "mode", "zone"]
    assert duetime("calendars", "show", "uk", "--json").exit_code == 0
    assert duetime("calendars", "delete", "uk").exit_code == 0
    assert duetime("calendars", "show", "uk").exit_code == 1


@pytest.mark.parametrize(
    ("content", "options", "reason"),
    [
        ("{", [], "not JSON"),
        ("[]", [], "JSON object"),
        ('{"dates": [NaN]}', [], "NaN"),
        ("{}", ["--mode", "includes"], ".ics"),
    ],
)
def test_a_bad_calendar_file_sends_nothing(
    duetime: Run, deployment: ScheduledDeployment, tmp_path: Path, content: str, options: list[str], reason: str
) -> None:
    """If a calendar file is bad, the command prints the reason and exits with code 2."""
    path = tmp_path / "calendar.json"
    path.write_text(content)
    result = duetime("calendars", "put", "x", str(path), *options)
    assert (result.exit_code, reason in result.stderr, deployment.received) == (2, True, [])
    assert duetime("calendars", "put", "x", str(tmp_path / "nowhere.json")).exit_code == 2


def test_each_reason_for_a_rejection_is_printed_with_its_field(duetime: Run, deployment: ScheduledDeployment) -> None:
    """The API's reason for a refusal is printed with its field."""
    deployment.scripted.append(problem(422, "fields_invalid", "x", {"field": "task.type", "reason": "is required"}))
    result = duetime("schedules", "create", "x", "t", "--cron", "* * * * *")
    assert (result.exit_code, "task.type: is required" in result.stderr) == (1, True)


def test_the_command_lists_the_events_of_a_schedule(duetime: Run, deployment: ScheduledDeployment) -> None:
    """Each event is shown in a row with time, action, actor, fields and reason."""
    event = {"type": "created", "at": "2026-11-21T10:00:00Z", "actor": {"kind": "user", "name": "ann"}, "fields": []}
    paused = {**event, "type": "paused", "actor": {"kind": "system", "name": None}, "reason": "it failed"}
    cron = {"field": "cron", "before": "* * * * *", "after": "*/7 * * * *"}
    updated = {**event, "type": "updated", "fields": ["cron", "task.timeout_seconds"], "values": [cron]}
    history = {"events": [event, paused, updated], "dropped": 2}
    deployment.scripted += [Answer(200, history)] * 2
    shown = duetime("schedules", "events", "nightly").stdout
    assert "2 older actions not kept" in shown
    assert "system" in shown
    assert "it failed" in shown
    assert "cron * * * * * → */7 * * * *, task.timeout_seconds" in " ".join(shown.split())
    assert json.loads(duetime("schedules", "events", "nightly", "--json").stdout) == history
