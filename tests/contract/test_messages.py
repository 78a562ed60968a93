"""Tests that messages about rejected fields use plain words and suggest what was probably meant."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import pytest
from pydantic import Field

from duetime.contract.http.operation import no_query, read_query
from duetime.contract.http.request_errors import Fault, FaultCode, FieldsInvalid, ParametersInvalid
from duetime.contract.http.request_json import shown
from duetime.contract.http.request_model import Body
from duetime.contract.http.suggestions import suggestion
from duetime.contract.http.timestamps import instant_of
from duetime.contract.http.validation_errors import validated
from duetime.contract.openapi.document import document
from duetime.contract.schedules.bodies import ScheduleCreate
from duetime.contract.tasks.bodies import Retry, TaskCreate
from duetime.contract.tasks.queries import TaskListQuery
from duetime_common.foreign_names import SYSTEMS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime_common.foreign_names import Meaning

TASK_FIELDS = ("type", "payload", "due_at", "delay_seconds", "target", "retry", "timeout_seconds", "tags", "name")
LIST_PARAMETERS = ("state", "type", "name", "tag", "order", "limit", "next_token", "ids")


class Nested(Body):
    """A model within another model."""

    READ_ONLY: ClassVar[frozenset[str]] = frozenset({"made_at"})

    max_attempts: int = 5


class Example(Body):
    """A model with every kind of field."""

    READ_ONLY: ClassVar[frozenset[str]] = frozenset({"id", "state"})
    FIXED: ClassVar[frozenset[str]] = frozenset({"kind_of"})

    text: str = ""
    whole: Annotated[int, Field(ge=1, le=9)] = 1
    number: float = 1.0
    flag: bool = False
    items: Annotated[list[int], Field(max_length=2, default_factory=list)]
    entry: Nested | None = None
    entries: Annotated[list[Nested], Field(default_factory=list)]
    mapping: Annotated[dict[str, int], Field(default_factory=dict)]


def faults(value: object, model: type[Body] = Example) -> list[tuple[str, str, FaultCode]]:
    """Return the faults of a value."""
    with pytest.raises(FieldsInvalid) as refused:
        validated(model, value)
    return [(fault.field, fault.reason, fault.code) for fault in refused.value.faults]


@pytest.mark.parametrize(
    ("field", "value", "reason"),
    [
        ("text", 5, "should be text, not a number"),
        ("text", None, "should be text, not null"),
        ("text", True, "should be text, not true or false"),
        ("whole", "5", "should be a whole number, not text"),
        ("whole", 1.5, "should be a whole number"),
        ("whole", True, "should be a whole number, not true or false"),
        ("number", "5", "should be a number, not text"),
        ("number", [], "should be a number, not a list"),
        ("flag", "true", "should be true or false, not text"),
        ("flag", 1, "should be true or false, not a number"),
        ("items", {}, "should be a list, not an object"),
        ("mapping", [], "should be an object, not a list"),
        ("entry", "x", "should be an object, not text"),
    ],
)
def test_the_error_for_a_wrong_type_names_the_expected_type(field: str, value: object, reason: str) -> None:
    """The message for a wrong type names the expected and the given type in JSON's terms."""
    assert faults({field: value}) == [(field, reason, FaultCode.WRONG_TYPE)]


def test_the_error_for_a_list_as_body_names_the_body() -> None:
    """If a body is a list, the message says that an object was expected and a list was given."""
    assert faults([]) == [("body", "should be an object, not a list", FaultCode.WRONG_TYPE)]


def test_limits_are_reported_in_plain_words() -> None:
    """Limits of items and numbers are stated in plain words."""
    assert faults({"items": [1, 2, 3]}) == [("items", "should have at most 2 items, not 3", FaultCode.TOO_LONG)]
    ((_, reason, code),) = faults({"whole": 10})
    assert (reason, code) == ("should be less than or equal to 9", FaultCode.OUT_OF_RANGE)


@pytest.mark.parametrize("place", ["whole", "items", "entry", "entries", "mapping"])
def test_a_whole_number_can_have_a_decimal_point(place: str) -> None:
    """As in JSON Schema, 5.0 is read as the integer 5 at any position, and the caller's body is not changed."""
    value = {
        "whole": 5.0,
        "items": [1, 5.0],
        "entry": {"max_attempts": 5.0},
        "entries": [{}, {"max_attempts": 5.0}],
        "mapping": {"a": 5.0},
    }
    body = {place: value[place]}
    before = repr(body)
    found = getattr(validated(Example, body), place)
    assert "5" in repr(found)
    assert "5.0" not in repr(found)
    assert repr(body) == before


def test_a_number_that_is_not_whole_is_rejected_as_an_integer() -> None:
    """Only whole numbers are accepted as integers, and other faults are still reported."""
    assert faults({"whole": 5.0, "items": [1.5, 2.0]}) == [
        ("items[0]", "should be a whole number", FaultCode.WRONG_TYPE)
    ]
    assert faults({"whole": 5.0, "x": 1}) == [("x", "is not a known field", FaultCode.UNKNOWN_FIELD)]
    assert faults({"whole": 50.0})[0][2] is FaultCode.OUT_OF_RANGE
    assert faults({"whole": 1e300})[0][2] is FaultCode.WRONG_TYPE


def test_a_field_of_responses_is_reported_as_read_only() -> None:
    """A field that only responses have is reported as read-only, not as unknown."""
    assert faults({"id": "x", "kind_of": "y", "entry": {"made_at": 1}, "made_at": 1}) == [
        ("entry.made_at", "is read-only: leave it out", FaultCode.READ_ONLY),
        ("id", "is read-only: leave it out", FaultCode.READ_ONLY),
        ("kind_of", "cannot be changed after creation: leave it out", FaultCode.CANNOT_CHANGE),
        ("made_at", "is not a known field", FaultCode.UNKNOWN_FIELD),
    ]


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("delaySeconds", "delay_seconds"),
        ("delay-seconds", "delay_seconds"),
        ("dealy_seconds", "delay_seconds"),
        ("delay", "delay_seconds"),
        ("countdown", "delay_seconds"),
        ("run_at", "due_at"),
        ("runAt", "due_at"),
        ("at", "due_at"),
        ("eta", "due_at"),
        ("scheduled_for", "due_at"),
        ("max_retries", "retry.max_attempts"),
        ("maxRetries", "retry.max_attempts"),
        ("url", "target.url"),
        ("endpoint", "target.url"),
        ("webhook", "target.url"),
        ("labels", "tags"),
        ("Tags", "tags"),
        ("args", "payload"),
        ("timeout", "timeout_seconds"),
        ("color", None),
        ("x", None),
        ("", None),
        ("k" * 500, None),
    ],
)
def test_the_probably_intended_field_is_suggested(name: str, meant: str | None) -> None:
    """Similar names, other spellings and other schedulers' names lead to a suggestion; other names do not."""
    assert suggestion(name, TASK_FIELDS) == meant


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("status", "state"),
        ("state[]", "state"),
        ("ids[0]", "ids"),
        ("tags", "tag"),
        ("page", "next_token"),
        ("cursor", "next_token"),
        ("offset", "next_token"),
        ("page_size", "limit"),
        ("per_page", "limit"),
        ("sort", "order"),
        ("orderBy", "order"),
        ("_", None),
    ],
)
def test_the_probably_intended_parameter_is_suggested(name: str, meant: str | None) -> None:
    """The parameter that was probably meant is suggested, also for a list whose name has brackets."""
    assert suggestion(name, LIST_PARAMETERS) == meant


def test_suggestions_are_in_the_errors_of_bodies_and_queries() -> None:
    """Suggestions are given for bodies, parts of bodies, kinds of targets, and queries."""
    unknown = FaultCode.UNKNOWN_FIELD
    assert faults({"type": "a", "delaySeconds": 5}, TaskCreate) == [
        ("delaySeconds", "is not a known field; did you mean 'delay_seconds'?", unknown)
    ]
    assert faults({"type": "a", "retry": {"max_retries": 5}}, TaskCreate) == [
        ("retry.max_retries", "is not a known field; did you mean 'max_attempts'?", unknown)
    ]
    target = {"kind": "http", "uri": "https://example.org", "url": "https://example.org", "arn": "x"}
    assert faults({"type": "a", "target": target}, TaskCreate) == [
        ("target.uri", "is not a known field; did you mean 'url'?", unknown),
        ("target.arn", "is not a known field", unknown),
    ]
    with pytest.raises(ParametersInvalid) as refused:
        read_query(TaskListQuery, "status=failed")
    assert refused.value.faults == (Fault("status", "is not a known parameter; did you mean 'state'?", unknown),)


OUR_OWN = re.compile(
    r"'[a-z_.]+'|`[A-Za-z_.=-]+`|POST /v1|settings|duetime|credentials|leases|acknowledged|jitter|authenticated|role"
)
"""A hint names one of duetime's fields or headers, or says where to find the equivalent."""


@pytest.mark.parametrize("model", [TaskCreate, ScheduleCreate])
@pytest.mark.parametrize(("system", "name"), [(system, name) for system, names in SYSTEMS.items() for name in names])
def test_the_error_for_another_schedulers_field_names_the_duetime_field(
    system: str, name: str, model: type[Body]
) -> None:
    """Every name in the table is refused in a task and a schedule, and the error names duetime's equivalent."""
    whole = {"name": "x", "cron": "0 3 * * *", "task": {"type": "a"}} if model is ScheduleCreate else {"type": "a"}
    if name in model.model_fields or (name == "schedule" and model is TaskCreate):
        return
    ((field, reason, code),) = faults({**whole, name: "x"}, model)
    assert (field, code) == (shown(name), FaultCode.UNKNOWN_FIELD), system
    said = reason.removeprefix("is not a known field; ")
    assert said != reason
    assert OUR_OWN.search(said), said


@pytest.mark.parametrize("names", SYSTEMS.values(), ids=list(SYSTEMS))
def test_every_field_in_the_table_exists(names: Mapping[str, Meaning]) -> None:
    """Each field that the table names exists in the OpenAPI document, alone or within another field."""
    known = {key for schema in document()["components"]["schemas"].values() for key in schema.get("properties", {})}
    for name, meaning in names.items():
        assert meaning.fields or meaning.text, name
        assert {part for field in meaning.fields for part in field.split(".")} <= known, name


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("max_retry", "retry.max_attempts"),
        ("important_level", "priority"),
        ("deadline_second", "timeout_seconds"),
        ("lock_timeout", "lock.wait_seconds"),
        ("start_time", "due_at"),
        ("create_info", "tags"),
        ("process_arg", "payload"),
        ("task_blob", "payload"),
        ("ttl", "expires_seconds"),
        ("webhook", "callback_url"),
        ("expires", "expires_seconds"),
        ("Upstash-Not-Before", "due_at"),
        ("workflowType", "type"),
        ("control_task_id", "after"),
        ("MaximumRetryAttempts", "retry.max_attempts"),
    ],
)
def test_the_error_for_a_foreign_task_field_names_the_duetime_field(name: str, meant: str) -> None:
    """For field names from duetime's first design and from other schedulers, the error names the task's field."""
    body = {name: 1} if meant == "type" else {"type": "a", name: 1}
    assert (name, f"is not a known field; did you mean {meant!r}?", FaultCode.UNKNOWN_FIELD) in faults(body, TaskCreate)


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("is_recurring", "POST /v1/schedules"),
        ("user_id", "the owner is the authenticated caller"),
    ],
)
def test_the_error_for_a_field_of_another_request_names_that_request(name: str, said: str) -> None:
    """If another request has the field, the message names that request or says what to do."""
    ((_, reason, _),) = faults({"type": "a", name: 1}, TaskCreate)
    assert said in reason


def test_only_fields_of_the_same_object_are_suggested() -> None:
    """No task field is suggested for a misspelled field in a retry policy."""
    assert suggestion("delay", Retry.model_fields) is None


def test_the_error_for_an_unescaped_plus_explains_the_encoding() -> None:
    """In a query, the + of an offset is a space; the error shows how to write it."""
    with pytest.raises(ParametersInvalid) as refused:
        read_query(TaskListQuery, "due_after=2026-12-01T00:00:00+09:00")
    (fault,) = refused.value.faults
    assert "%2B" in fault.reason


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("2026-12-01", "no time of day"),
        ("2026-12-01 09:00:00Z", "a T stands"),
        ("2026-12-01T09:00Z", "no seconds"),
        ("2026-12-01T09:00:00+0100", "needs a colon"),
        ("2026-12-01T09:00:00", "needs an offset"),
        ("1796083200", "not a number of seconds"),
        (1796083200, "not a number of seconds"),
        ("2026-12-01T09:00:00.5 09:00", "%2B"),
        ("tomorrow", "such as 2026-12-01T09:00:00.250+09:00"),
    ],
)
def test_the_error_for_an_invalid_time_shows_the_expected_format(text: object, said: str) -> None:
    """The error says what is wrong with a time, and shows the expected format."""
    with pytest.raises(ValueError, match=r"should be an RFC 3339 time|needs an offset") as refused:
        instant_of(text)
    assert said in str(refused.value)


def test_the_error_for_a_repeated_parameter_says_that_one_value_is_allowed() -> None:
    """The error for a repeated parameter also says that the parameter takes only one value."""
    with pytest.raises(ParametersInvalid) as refused:
        read_query(TaskListQuery, "limit=5&limit=6")
    assert refused.value.faults == (
        Fault("limit", "is given more than once, and takes one value", FaultCode.DUPLICATE),
    )


def test_the_error_for_an_operation_without_parameters_suggests_nothing() -> None:
    """If an operation has no parameters, the error suggests no parameter."""
    with pytest.raises(ParametersInvalid) as refused:
        no_query("wait=5")
    assert refused.value.faults == (
        Fault(shown("wait"), "is not a known parameter: this operation has none", FaultCode.UNKNOWN_FIELD),
    )


def test_every_error_code_has_only_letters_and_underscores() -> None:
    """Fault codes consist of letters and underscores, because programs compare the codes."""
    values: list[Any] = [code.value for code in FaultCode]
    assert all(value.replace("_", "").isalpha() and value.islower() for value in values)
