"""Tests of calendar ETags and preconditions, which prevent clients from overwriting each other's updates."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.functions.api.test_schedules import ICS

if TYPE_CHECKING:
    from tests.functions.api.gateway import Gateway

UK = "/v1/calendars/uk"
SUNDAYS = {"weekdays": ["sun"]}


def test_the_first_put_of_a_calendar_returns_201_and_a_replacement_200(api: Gateway) -> None:
    """The first PUT of a calendar returns 201, a replacement returns 200, and each PUT changes the ETag."""
    new = api.send("PUT", UK, SUNDAYS)
    assert (new.status, new.location) == (201, UK)
    again = api.send("PUT", UK, SUNDAYS)
    assert (again.status, "Location" in again.headers) == (200, False)
    assert new.headers["ETag"] != again.headers["ETag"] == api.send("GET", UK).headers["ETag"]


def test_a_get_of_a_calendar_with_its_current_etag_returns_304(api: Gateway) -> None:
    """GET returns 304 if the client has the current ETag, and otherwise returns the calendar."""
    tag = api.send("PUT", UK, SUNDAYS).headers["ETag"]
    unchanged = api.send("GET", UK, headers={"if-none-match": tag})
    assert (unchanged.status, unchanged.text, unchanged.headers["ETag"]) == (304, "", tag)
    api.send("PUT", UK, {"weekdays": ["sat"]})
    assert api.send("GET", UK, headers={"if-none-match": tag}).body["weekdays"] == ["sat"]


@pytest.mark.parametrize("is_file", [False, True], ids=["json", "icalendar"])
def test_a_change_with_an_earlier_etag_returns_412(api: Gateway, *, is_file: bool) -> None:
    """A PUT or DELETE whose `If-Match` has an earlier ETag returns 412, and the calendar does not change."""
    tag = api.send("PUT", UK, SUNDAYS).headers["ETag"]
    newer = api.send("PUT", UK, {"weekdays": ["sat"]}, {"if-match": tag})
    assert newer.status == 200
    if is_file:
        late = api.send("PUT", UK, raw=ICS, headers={"if-match": tag, "content-type": "text/calendar"})
    else:
        late = api.send("PUT", UK, SUNDAYS, {"if-match": tag})
    assert (late.status, late.problem["code"], "If-Match" in late.faults) == (412, "version_mismatch", True)
    assert api.send("DELETE", UK, headers={"if-match": tag}).status == 412
    assert api.send("GET", UK).body["weekdays"] == ["sat"]
    assert api.send("DELETE", UK, headers={"if-match": newer.headers["ETag"]}).status == 200


def test_if_none_match_never_replaces_a_calendar(api: Gateway) -> None:
    """`If-None-Match: *` never replaces a calendar, and other values, which would have no effect, are refused."""
    only_new = {"if-none-match": "*"}
    assert api.send("PUT", UK, SUNDAYS, only_new).status == 201
    taken = api.send("PUT", UK, SUNDAYS, only_new)
    assert (taken.status, taken.problem["code"], "If-None-Match" in taken.faults) == (412, "calendar_exists", True)
    assert api.send("GET", UK).body["weekdays"] == ["sun"]
    assert api.send("PUT", UK, SUNDAYS, {"if-none-match": '"2"'}).status == 400
    assert api.send("DELETE", UK).status == 200
    assert api.send("PUT", UK, SUNDAYS, only_new).status == 201


def test_the_etag_of_a_deleted_calendar_matches_no_later_calendar(api: Gateway) -> None:
    """A calendar that is deleted and created again has a new ETag, and no ETag matches a missing calendar."""
    tag = api.send("PUT", UK, SUNDAYS).headers["ETag"]
    api.send("DELETE", UK)
    assert api.send("PUT", UK, SUNDAYS, {"if-match": tag}).status == 412
    assert api.send("PUT", UK, SUNDAYS).headers["ETag"] != tag
    assert api.send("PUT", UK, SUNDAYS, {"if-match": tag}).status == 412


def test_a_calendar_can_be_put_in_the_form_that_get_returns(api: Gateway) -> None:
    """A calendar can be PUT in the form that GET returns, but the name in its body must match the path."""
    shown = api.send("PUT", UK, SUNDAYS).body
    assert api.send("PUT", UK, shown).body == shown
    other = api.send("PUT", "/v1/calendars/de", shown)
    assert (other.status, other.faults) == (422, {"name": "should be 'de', as in the path, or be left out"})


@pytest.mark.parametrize("query", ["mode=includes", "timezone=UTC"])
def test_parameters_for_calendar_files_are_rejected_with_a_json_body(api: Gateway, query: str) -> None:
    """Parameters for calendar files are refused if the body is JSON, and the error names the right body type."""
    answer = api.send("PUT", UK, SUNDAYS, query=query)
    assert (answer.status, "in its body" in answer.faults[query.partition("=")[0]]) == (400, True)
