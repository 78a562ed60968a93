"""Tests which bodies for schedules are accepted, and that rejections have field and reason."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from openapi_schema_validator import OAS31Validator
from pydantic import TypeAdapter

from duetime.contract.http.operation import read_query
from duetime.contract.http.problems import faults_of, kind_of
from duetime.contract.http.request_json import read
from duetime.contract.openapi.document import document
from duetime.contract.schedules.decoding import (
    backfill_request,
    pause_reason,
    preview_request,
    schedule_spec,
    schedule_update,
)
from duetime.contract.schedules.encoding import previewed, schedule_entry, schedule_response
from duetime.contract.schedules.operations import OccurrencesQuery, ScheduleListQuery
from duetime.contract.schedules.responses import ScheduleResponse
from duetime.contract.tasks.encoding import json_text
from duetime.domain.errors import RequestError
from duetime.domain.ids import TaskId
from duetime.domain.schedules.backfill import Backfill, BackfillCursor
from duetime.domain.schedules.cron_dialects import Dialect
from duetime.domain.schedules.definition import OnExcluded, Overlap, ScheduleSpec, ScheduleUpdate, Written
from duetime.domain.schedules.occurrences import following
from duetime.domain.schedules.recurrences import Clock
from duetime.domain.schedules.run_history import BackfillRun, LastRun
from duetime.domain.schedules.runs import ScheduleStatus
from duetime.domain.schedules.schedule import Schedule
from duetime.domain.schedules.schedule_record import StoredSchedule
from duetime.domain.schedules.time_zones import Fold, Gap, zone_named
from duetime.domain.tasks.targets import HttpTarget
from duetime.domain.tasks.task import Content, ContentPlace
from duetime.domain.tasks.type_defaults import TaskSpec
from duetime.domain.times import HOUR, to_iso
from tests.clocks import NOW
from tests.contract.properties import unhurried

DOCUMENT = document()
TASK = {"type": "report"}
GOOD = {"cron": "30 1 * * *", "task": TASK}
FAR = "x" * 257
EVENTBRIDGE = {"cron": "cron(0 10 * * ? *)", "dialect": "eventbridge"}
SPEC = ScheduleSpec(Written(cron="30 1 * * *"), TaskSpec("report", b"null"), "nightly")

BAD_SCHEDULES: list[tuple[dict[str, Any], str, str]] = [
    ({"task": TASK}, "cron", "exactly one of cron, rate, interval, dates, permanent"),
    ({**GOOD, "rate": "5 minutes"}, "rate", "exactly one of"),
    ({"rate": "1 hour", "permanent": {}, "task": TASK}, "permanent", "exactly one of"),
    ({**GOOD, "cron": "61 * * * *"}, "cron", "minute"),
    ({**GOOD, "cron": "* * *"}, "cron", "5 fields"),
    ({**GOOD, "cron": "0 0 30 2 *"}, "cron", "never occurs"),
    ({**GOOD, "cron": "@reboot"}, "cron", "@reboot"),
    ({**GOOD, "cron": "R * * * *"}, "cron", ""),
    ({**GOOD, "cron": ""}, "cron", "at least 1 character"),
    ({**GOOD, "cron": FAR}, "cron", "at most 256 characters"),
    ({**GOOD, "cron": 5}, "cron", "should be text"),
    ({**GOOD, "cron": None}, "cron", "exactly one of"),
    ({**GOOD, "cron": "* * * * *\u0000"}, "cron", "printable"),
    ({**GOOD, "dialect": "unix"}, "dialect", "'cron', 'vixie', 'kubernetes', 'quartz', 'spring' or 'eventbridge'"),
    ({**GOOD, "cron": "0 0 */2 * 1-5"}, "cron", "dialect: vixie for both"),
    ({"rate": "5 minutes", "dialect": "vixie", "task": TASK}, "dialect", "cron only"),
    ({**GOOD, "dialect": "eventbridge"}, "cron", "6 fields"),
    ({"rate": "5 minutes", "dialect": "eventbridge", "task": TASK}, "dialect", "cron only"),
    ({"rate": "soon", "task": TASK}, "rate", ""),
    ({"rate": "0 minutes", "task": TASK}, "rate", ""),
    ({"rate": 5, "task": TASK}, "rate", "should be text"),
    ({"interval": "12h", "task": TASK}, "interval", "ISO 8601"),
    ({"interval": "R0/PT1H", "task": TASK}, "interval", "R0"),
    ({"dates": [], "task": TASK}, "dates", "at least 1 item"),
    ({"dates": ["2026-12-24T09:00:00", "Christmas"], "task": TASK}, "dates[1]", "date-time"),
    ({"dates": ["2026-12-24T09:00:00"] * 1001, "task": TASK}, "dates", "at most 1000 items"),
    ({"permanent": {"gap_seconds": -1}, "task": TASK}, "permanent.gap_seconds", "greater than or equal to 0"),
    ({"permanent": {"gap_seconds": 10**12}, "task": TASK}, "permanent.gap_seconds", "less than or equal to"),
    ({"permanent": {"gap_seconds": 1.5}, "task": TASK}, "permanent.gap_seconds", "should be a whole number"),
    ({"permanent": {"gap_seconds": True}, "task": TASK}, "permanent.gap_seconds", "should be a whole number"),
    ({"permanent": 5, "task": TASK}, "permanent", "object"),
    ({"permanent": {"seconds": 5}, "task": TASK}, "permanent.seconds", "not a known field"),
    ({**GOOD, "timezone": "Europe/Atlantis"}, "timezone", "IANA"),
    ({**GOOD, "timezone": "europe/london"}, "timezone", "did you mean Europe/London"),
    ({**GOOD, "timezone": "../../etc/passwd"}, "timezone", "IANA"),
    ({**GOOD, "timezone": "x" * 10_000}, "timezone", "at most 64 characters"),
    ({**GOOD, "dst_gap": "first"}, "dst_gap", "'skip' or 'shift_forward'"),
    ({**GOOD, "dst_fold": "skip"}, "dst_fold", "'first' or 'both'"),
    ({**GOOD, "calendars": ["a b"]}, "calendars[0]", "1 to 128 characters"),
    ({**GOOD, "calendars": ["a", "a"]}, "calendars", "more than once"),
    ({**GOOD, "calendars": [f"c{n}" for n in range(9)]}, "calendars", "at most 8 items"),
    ({**GOOD, "calendars": "uk-holidays"}, "calendars", "should be a list"),
    ({**GOOD, "on_excluded": "run"}, "on_excluded", "'skip', 'move', 'previous_day' or 'next_day'"),
    ({**GOOD, "spread_seconds": 86_401}, "spread_seconds", "less than or equal to 86400"),
    ({**GOOD, "extra_dates": "2026-12-27"}, "extra_dates", "should be a list"),
    ({**GOOD, "excluded_dates": [5]}, "excluded_dates[0]", "should be text"),
    ({**GOOD, "catch_up_mode": "some"}, "catch_up_mode", "'latest' or 'all'"),
    ({"task": TASK, "timings": []}, "timings", "at least 1"),
    ({"task": TASK, "timings": [{"cron": "0 9 * * *"}] * 11}, "timings", "at most 10 items"),
    ({"task": TASK, "timings": [{"permanent": {}}]}, "timings[0].permanent", "not a known field"),
    ({**GOOD, "jitter_seconds": -1}, "jitter_seconds", "greater than or equal to 0"),
    ({**GOOD, "jitter_seconds": 86_401}, "jitter_seconds", "less than or equal to 86400"),
    ({**GOOD, "start_at": "2026-12-01T09:00:00"}, "start_at", "offset"),
    ({**GOOD, "end_at": 5}, "end_at", "RFC 3339"),
    ({**GOOD, "remaining_runs": 0}, "remaining_runs", "greater than or equal to 1"),
    (
        {**GOOD, "overlap": "queue"},
        "overlap",
        "'skip', 'buffer_one', 'buffer_all', 'cancel_other', 'replace_other' or 'allow_all'",
    ),
    ({**GOOD, "catch_up_seconds": 10**9}, "catch_up_seconds", "less than or equal to"),
    ({**GOOD, "pause_on_failure": "yes"}, "pause_on_failure", "should be true or false"),
    ({**GOOD, "name": ""}, "name", "1 to 128 characters"),
    ({**GOOD, "name": "a/b"}, "name", "1 to 128 characters"),
    ({**GOOD, "name": "x" * 129}, "name", "1 to 128 characters"),
    ({**GOOD, "name": "é"}, "name", "1 to 128 characters"),
    ({**GOOD, "owner": "me"}, "owner", "not a known field"),
    ({**GOOD, "id": "x"}, "id", "not a known field"),
    ({**GOOD, "created_at": "x"}, "created_at", "is read-only"),
    ({**GOOD, "upcoming": []}, "upcoming", "is read-only"),
    ({"cron": "30 1 * * *"}, "task", "required"),
    ({**GOOD, "task": None}, "task", "object"),
    ({**GOOD, "task": {}}, "task.type", "required"),
    ({**GOOD, "task": {"type": "a b"}}, "task.type", "1 to 64 characters"),
    ({**GOOD, "task": {**TASK, "due_at": "2026-12-01T09:00:00Z"}}, "task.due_at", "the schedule sets the time"),
    ({**GOOD, "task": {**TASK, "delay_seconds": 5}}, "task.delay_seconds", "the schedule sets the time"),
    ({**GOOD, "task": {**TASK, "color": 1}}, "task.color", "not a known field"),
    ({**GOOD, "task": {**TASK, "payload": "x" * 1_048_576}}, "task.payload", "larger than"),
    ({**GOOD, "task": {**TASK, "target": {"kind": "http", "url": "ftp://x"}}}, "task.target.url", "http"),
    ({**GOOD, "task": {**TASK, "target": {"kind": "fax"}}}, "task.target.kind", ""),
    ({**GOOD, "task": {**TASK, "retry": {"max_attempts": 0}}}, "task.retry.max_attempts", "greater than"),
    (
        {
            **GOOD,
            "task": {**TASK, "rollback_on_failure": True, "target": {"kind": "http", "url": "https://example.org"}},
        },
        "task.rollback_on_failure",
        "phases",
    ),
]


def update_of(body: dict[str, Any]) -> ScheduleUpdate:
    """Return the update decoded from a body."""
    return schedule_update(read(json.dumps(body)), "nightly")


def refusal(decode: Any, body: object, *arguments: object) -> tuple[str, int, list[tuple[str, str]]]:  # noqa: ANN401 - any decoder
    """Return the code, the status, and the fields with reasons with which a body is rejected."""
    with pytest.raises(RequestError) as caught:
        decode(read(json.dumps(body)), *arguments)
    kind = kind_of(caught.value)
    return kind.code, kind.status.value, [(fault.field, fault.reason) for fault in faults_of(caught.value)]


@pytest.mark.parametrize(("body", "field", "reason"), BAD_SCHEDULES)
def test_an_invalid_field_is_rejected_with_its_name_and_reason(body: dict[str, Any], field: str, reason: str) -> None:
    """A schedule with a bad field is refused with status 422, and the error has the field's name and the reason."""
    code, status, faults = refusal(schedule_spec, body)
    assert (code, status) == ("fields_invalid", 422)
    assert faults[0][0] == field
    assert reason in faults[0][1]


def test_every_field_of_a_schedule_is_decoded() -> None:
    """Each field is decoded to the domain, and the timing is stored as it was written."""
    spec = schedule_spec(
        read(
            json.dumps(
                {
                    "name": "nightly",
                    "cron": "30 1 * * *",
                    "timezone": "Europe/London",
                    "dst_gap": "shift_forward",
                    "dst_fold": "both",
                    "calendars": ["uk-holidays"],
                    "on_excluded": "move",
                    "jitter_seconds": 30,
                    "start_at": "2026-12-01T00:00:00Z",
                    "end_at": "2027-12-01T00:00:00+01:00",
                    "remaining_runs": 7,
                    "overlap": "allow_all",
                    "catch_up_seconds": 60,
                    "pause_on_failure": True,
                    "task": {"type": "report", "payload": {"a": 1}, "target": {"kind": "http", "url": "https://e.org"}},
                }
            )
        )
    )
    assert (spec.name, spec.written) == ("nightly", Written(cron="30 1 * * *"))
    assert spec.clock == Clock(zone_named("Europe/London"), Gap.SHIFT_FORWARD, Fold.BOTH)
    assert (spec.calendars, spec.on_excluded, spec.overlap) == (("uk-holidays",), OnExcluded.MOVE, Overlap.ALLOW_ALL)
    assert (spec.jitter_seconds, spec.remaining_runs, spec.catch_up_seconds, spec.pause_on_failure) == (30, 7, 60, True)
    assert (to_iso(spec.start_at or 0), to_iso(spec.end_at or 0)) == (
        "2026-12-01T00:00:00.000Z",
        "2027-11-30T23:00:00.000Z",
    )
    assert (spec.task.type, spec.task.payload, spec.task.target) == (
        "report",
        b'{"a":1}',
        HttpTarget("https://e.org"),
    )


@pytest.mark.parametrize(
    ("timing", "written"),
    [
        ({"rate": "5 minutes"}, Written(rate="5 minutes")),
        ({"interval": "R5/2026-01-31T09:00:00/P1M"}, Written(interval="R5/2026-01-31T09:00:00/P1M")),
        ({"dates": ["2026-12-24T09:00:00"]}, Written(dates=("2026-12-24T09:00:00",))),
        ({"permanent": {"gap_seconds": 0}}, Written(permanent=0)),
        (
            {"cron": "cron(0 10 * * ? *)", "dialect": "eventbridge"},
            Written(cron="cron(0 10 * * ? *)", dialect=Dialect.EVENTBRIDGE),
        ),
    ],
)
def test_every_kind_of_timing_is_stored_unchanged(timing: dict[str, Any], written: Written) -> None:
    """A timing of any kind and dialect is stored with the text that the client chose."""
    assert schedule_spec(read(json.dumps({**timing, "task": TASK}))).written == written


def test_an_update_of_a_schedule_contains_only_the_given_fields() -> None:
    """Fields that an update omits are absent after decoding, and null removes a bound."""
    update = update_of({"timezone": "Asia/Kolkata", "end_at": None, "calendars": []})
    assert update.fields == {"timezone": zone_named("Asia/Kolkata"), "end_at": None, "calendars": ()}
    assert (update.timing, update.task) == (None, None)
    assert update_of({"rate": "1 hour"}).of(SPEC).written == Written(rate="1 hour")
    assert update_of({"task": {"type": "x"}}).of(SPEC).task == replace(SPEC.task, type="x", allow_unknown_type=False)


@pytest.mark.parametrize(
    ("before", "patch", "after"),
    [
        ({"cron": "0 1 * * *"}, {"cron": "0 2 * * *"}, Written(cron="0 2 * * *")),
        ({"cron": "0 1 * * *"}, {"cron": None, "rate": "1 hour"}, Written(rate="1 hour")),
        ({"cron": "0 1 * * *"}, {"rate": None}, Written(cron="0 1 * * *")),
        (EVENTBRIDGE, {"cron": "cron(0 11 * * ? *)"}, Written(cron="cron(0 11 * * ? *)", dialect=Dialect.EVENTBRIDGE)),
        (EVENTBRIDGE, {"cron": "0 1 * * *", "dialect": "cron"}, Written(cron="0 1 * * *")),
        (EVENTBRIDGE, {"dates": ["2026-12-24T09:00:00"]}, Written(dates=("2026-12-24T09:00:00",))),
        ({"permanent": {"gap_seconds": 5}}, {"permanent": {}}, Written(permanent=5)),
        ({"permanent": {"gap_seconds": 5}}, {"permanent": {"gap_seconds": 6}}, Written(permanent=6)),
        ({"cron": "0 1 * * *"}, {"permanent": {}}, Written(permanent=0)),
    ],
)
def test_a_timing_is_merged_or_replaced_by_another(
    before: dict[str, Any], patch: dict[str, Any], after: Written
) -> None:
    """A new timing replaces the previous timing, null removes the timing, and `dialect` is only valid with `cron`."""
    spec = schedule_spec(read(json.dumps({**before, "task": TASK})))
    assert update_of(patch).of(spec).written == after


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "body"),
        ([], "body"),
        ({"name": "other"}, "name"),
        ({"version": 3}, "version"),
        ({"cron": None}, "cron"),
        ({"task": None}, "task"),
        ({"task": {"type": None}}, "task.type"),
        ({"task": {"color": 1}}, "task.color"),
        ({"cron": "* * * * *", "rate": "1 hour"}, "rate"),
        ({"dialect": "eventbridge"}, "cron"),
        ({"task": {"type": "x", "at": "2026-12-01T09:00:00Z"}}, "task.at"),
        ({"remaining_runs": 0}, "remaining_runs"),
    ],
)
def test_an_invalid_update_of_a_schedule_is_rejected(body: object, field: str) -> None:
    """An update is refused if it is empty, has a new name or two timings, or would be refused in a creation."""
    assert refusal(lambda document: schedule_update(document, "nightly").of(SPEC), body)[2][0][0] == field


@pytest.mark.parametrize(
    ("decode", "body", "field"),
    [
        (pause_reason, {"reason": "x" * 257}, "reason"),
        (pause_reason, {"reason": "\x1b[31m"}, "reason"),
        (pause_reason, {"note": ""}, "note"),
        (backfill_request, {}, "scheduled_after"),
        (
            backfill_request,
            {"scheduled_after": "2026-11-20T00:00:00Z", "scheduled_before": "yesterday"},
            "scheduled_before",
        ),
        (
            backfill_request,
            {"scheduled_after": "2026-11-20", "scheduled_before": "2026-11-20T01:00:00Z"},
            "scheduled_after",
        ),
        (
            backfill_request,
            {
                "scheduled_after": "2026-11-20T00:00:00Z",
                "scheduled_before": "2026-11-20T01:00:00Z",
                "per_minute": 0,
            },
            "per_minute",
        ),
    ],
)
def test_an_invalid_pause_or_backfill_is_rejected(decode: Any, body: object, field: str) -> None:  # noqa: ANN401 - any decoder
    """A bad pause or backfill is refused, and the error has the field's name in the body."""
    assert refusal(decode, body)[2][0][0] == field


@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({}, "cron"),
        ({"cron": "* * * * *", "count": 0}, "count"),
        ({"cron": "* * * * *", "count": 1001}, "count"),
        ({"cron": "* * * * *", "from": "now"}, "from"),
        ({"cron": "* * * * *", "start": 1}, "start"),
        ({"cron": "* * * * *", "task": TASK}, "task"),
        ({"cron": "* * * * *", "start_at": "2026-12-02T00:00:00Z", "end_at": "2026-12-01T00:00:00Z"}, "end_at"),
        ({"permanent": {"gap_seconds": 5}, "jitter_seconds": 5}, "jitter_seconds"),
    ],
)
def test_an_invalid_preview_is_rejected(body: object, field: str) -> None:
    """A preview has the fields of a schedule's timing, `from` and `count`, and refuses other fields."""
    assert refusal(preview_request, body, NOW)[2][0][0] == field


def test_a_preview_reports_a_skipped_hour() -> None:
    """The hour that London skips in March is reported as skipped, in local time and UTC."""
    body = {"cron": "30 1 * * *", "timezone": "Europe/London", "from": "2027-03-27T00:00:00Z", "count": 3}
    first, lost, last = (previewed(each) for each in preview_request(read(json.dumps(body)), NOW).occurrences(()))
    assert (first["scheduled_at"], first["local_time"], first["runs"], first["note"]) == (
        "2027-03-27T01:30:00.000Z",
        "2027-03-27T01:30:00+00:00",
        True,
        None,
    )
    assert (lost["runs"], lost["due_at"]) == (False, None)
    assert "does not exist" in (lost["note"] or "")
    assert last["scheduled_at"] == "2027-03-29T00:30:00.000Z"


def test_a_preview_includes_an_occurrence_at_its_start() -> None:
    """An occurrence at `from` is included; without `from`, a rate is counted from now."""
    body = {"cron": "0 9 * * *", "from": "2026-12-01T09:00:00Z", "count": 1}
    (first,) = preview_request(read(json.dumps(body)), NOW).occurrences(())
    assert to_iso(first.nominal) == "2026-12-01T09:00:00.000Z"
    (now,) = preview_request(read('{"rate": "1 hour", "count": 1}'), NOW).occurrences(())
    assert now.nominal == NOW


def test_a_preview_of_a_permanent_schedule_has_only_its_first_run() -> None:
    """A permanent schedule's preview has only the first run, and a note that the second run's time is unknown."""
    (first,) = preview_request(read('{"permanent": {"gap_seconds": 60}, "count": 5}'), NOW).occurrences(())
    assert (first.nominal, "60 s after the end" in first.note) == (NOW, True)


@unhurried
@given(
    st.sampled_from(["*/7 * * * *", "30 1 * * *", "0 0 1 * *", "0 2 * * sun", "15 */5 L * *", "30 0 0 * * 1-5"]),
    st.sampled_from(["UTC", "Europe/London", "America/New_York", "Australia/Lord_Howe", "Africa/Casablanca"]),
    st.sampled_from(list(Gap)),
    st.sampled_from(list(Fold)),
    st.integers(0, 4 * 365 * 24),
    st.integers(1, 60),
)
def test_a_preview_has_the_occurrences_of_the_domain(
    cron: str, zone: str, gap: Gap, fold: Fold, hours: int, count: int
) -> None:
    """For each cron expression and zone, a preview over REST has the occurrences that the domain computes."""
    start = NOW + hours * HOUR
    body = {"cron": cron, "timezone": zone, "dst_gap": gap, "dst_fold": fold, "from": to_iso(start), "count": count}
    shown = [previewed(each) for each in preview_request(read(json.dumps(body)), NOW).occurrences(())]
    spec = ScheduleSpec(Written(cron=cron), TaskSpec("x"), clock=Clock(zone_named(zone), gap, fold))
    plain = Schedule("id", spec, spec.written.timing, NOW)
    assert [(one["scheduled_at"], one["runs"], one["note"] or "") for one in shown] == [
        (to_iso(one.nominal), one.runs, one.note) for one in following(plain, start - 1, count)
    ]


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        ("state=running", "state"),
        ("limit=0", "limit"),
        ("limit=101", "limit"),
        ("name=x", "name"),
        ("type=a&type=b", "type"),
    ],
)
def test_an_invalid_list_query_is_rejected(raw: str, field: str) -> None:
    """A bad list query is refused, and the error names the parameter."""
    with pytest.raises(RequestError) as caught:
        read_query(ScheduleListQuery, raw)
    assert faults_of(caught.value)[0].field == field


@pytest.mark.parametrize(
    ("raw", "field"),
    [
        ("scheduled_after=now", "scheduled_after"),
        ("scheduled_before=2026-11-21", "scheduled_before"),
        ("limit=1001", "limit"),
        ("limit=-1", "limit"),
        ("start=2026-11-21T00:00:00Z", "start"),
        ("scheduled_after=2026-11-21T02:00:00Z&scheduled_before=2026-11-21T02:00:00Z", "scheduled_before"),
        ("scheduled_before=2020-01-01T00:00:00Z", "scheduled_before"),
    ],
)
def test_an_invalid_query_of_occurrences_is_rejected(raw: str, field: str) -> None:
    """A bad query for occurrences is refused with the parameter's name, and its end must be after its start."""
    with pytest.raises(RequestError) as caught:
        read_query(OccurrencesQuery, raw).bounds(NOW)
    assert faults_of(caught.value)[0].field == field


REQUESTS = (
    "ScheduleCreate",
    "ScheduleUpdate",
    "TaskTemplateInput",
    "TaskTemplateUpdate",
    "PreviewRequest",
    "SchedulePause",
    "BackfillCreate",
)


def fits(model: str, value: object) -> bool:
    """Return whether a value validates against a model of the OpenAPI document."""
    return bool(OAS31Validator({**DOCUMENT, "$ref": f"#/components/schemas/{model}"}).is_valid(value))


def test_the_document_describes_every_field_of_a_request() -> None:
    """Each field has a description or a reference, and unknown fields are documented as refused."""
    for model in (*REQUESTS, "CalendarPut", "CalendarWindowInput", "CalendarSpanInput"):
        schema = DOCUMENT["components"]["schemas"][model]
        assert schema["additionalProperties"] is False
        for name, field in schema["properties"].items():
            assert field.get("description") or "$ref" in field, name


def test_the_document_and_the_code_accept_the_same_schedules() -> None:
    """The document's examples and a timing of every kind are accepted, but a due time for the task is refused."""
    for example in DOCUMENT["components"]["schemas"]["ScheduleCreate"]["examples"]:
        assert fits("ScheduleCreate", example)
        assert schedule_spec(read(json.dumps(example)))
    timings: list[dict[str, Any]] = [{"rate": "1 hour"}, {"interval": "PT1H"}, {"permanent": {}}]
    for timing in (*timings, {"dates": ["2026-12-24T09:00:00"]}):
        assert fits("ScheduleCreate", {**timing, "task": TASK})
    assert fits("ScheduleCreate", {**GOOD, "rate": None, "permanent": None, "end_at": None})
    assert not fits("ScheduleCreate", {**GOOD, "task": {**TASK, "delay_seconds": 1}})
    assert fits("ScheduleUpdate", {"end_at": None})
    assert not fits("ScheduleUpdate", {})
    assert fits("ScheduleUpdate", {"task": {"payload": 1}})
    assert not any(
        "default" in field for field in DOCUMENT["components"]["schemas"]["ScheduleUpdate"]["properties"].values()
    )


def test_a_schedule_response_has_exactly_the_documented_fields() -> None:
    """A response has exactly the document's fields and types, whether or not the fields have values."""
    spec = schedule_spec(read(json.dumps({**GOOD, "name": "nightly", "end_at": "2027-01-01T00:00:00Z"})))
    uid = TaskId.of(NOW, 0, 1)
    plain = StoredSchedule("me", uid, 4, spec, Content(ContentPlace.RECORD, "payload", b'{"a":1}'), NOW, NOW, NOW)
    backfill = BackfillRun("1a", Backfill(NOW - HOUR, NOW, 60, NOW), 9, BackfillCursor(NOW, 4), NOW)
    busy = replace(plain, last_run=LastRun(uid, NOW, 1), backfills=(backfill,), paused_reason="why").remarked(
        NOW, "", "missed"
    )
    for each in (plain, busy):
        shown = schedule_response(ScheduleStatus(each, None, 0, None), following(each.schedule(), NOW, 2))
        assert TypeAdapter(ScheduleResponse).validate_json(json_text(shown))
        assert set(shown) == set(ScheduleResponse.__annotations__) - {"estimate"}
        assert fits("Schedule", json.loads(json_text(shown)))
    assert shown["skipped_runs"] == [{"recorded_at": to_iso(NOW), "local_time": None, "reason": "missed"}]
    assert (shown["task"]["payload"], shown["backfills"][0]["runs_started"]) == ({"a": 1}, 4)


def test_a_payload_missing_from_a_list_is_left_out() -> None:
    """A payload that a list leaves out is absent and not null, because null is a valid payload."""
    spec = schedule_spec(read(json.dumps(GOOD)))
    outside = Content(ContentPlace.ITEM, "payload.1", None)
    stored = StoredSchedule("me", TaskId.of(NOW, 0, 1), 4, spec, outside, NOW, NOW, NOW)
    assert "payload" not in schedule_entry(ScheduleStatus(stored, None, 0, None))["task"]
