from __future__ import annotations

from contextlib import suppress
from functools import partial
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duetime.contract.http.operation import no_query, read_query
from duetime.contract.http.request_errors import ParametersInvalid
from duetime.contract.tasks.queries import TaskListQuery
from duetime.domain.ids import TaskId
from duetime.domain.limits import MAX_PAGE
from duetime.domain.tasks.filters import Range, TaskFilter
from duetime.domain.tasks.states import State
from tests.contract.properties import unhurried

ID = TaskId.of(1_795_228_387_250, 7, 42)


def named(raw: str) -> list[str]:
    """Return the parameters for which a query is refused."""
    with pytest.raises(ParametersInvalid) as refusal:
        read_query(TaskListQuery, raw)
    return [fault.field for fault in refusal.value.faults]


def test_an_empty_query_lists_everything_latest_first() -> None:
    """Without parameters a list is unfiltered, starts with the latest due time, and has a full page."""
    query = read_query(TaskListQuery, "")
    assert (query.filter, query.order, query.limit, query.next_token, query.ids) == (
        TaskFilter(),
        "desc",
        MAX_PAGE,
        None,
        (),
    )


def test_every_parameter_is_decoded_to_the_filter() -> None:
    """Each parameter of a query is decoded to the filter."""
    raw = (
        "state=failed&type=report&name=Nightly%20report&tag=team:dba&tag=zone:a:b"
        "&due_after=2026-12-01T09%3A00%3A00%2B09%3A00&due_before=2026-12-01T00:00:01Z&order=asc&limit=7&next_token=abc"
    )
    query = read_query(TaskListQuery, raw)
    assert query.filter == TaskFilter(
        states=(State.FAILED,),
        type="report",
        name="Nightly report",
        tags={"team": "dba", "zone": "a:b"},
        due=Range(1_796_083_200_000, 1_796_083_201_000),
    )
    assert (query.order, query.limit, query.next_token) == ("asc", 7, "abc")


def test_several_ids_are_separated_by_commas_or_repeated() -> None:
    """Several ids can be separated by commas or repeated, and cannot be combined with other parameters."""
    assert read_query(TaskListQuery, f"ids={ID},{ID}").ids == (ID, ID)
    assert read_query(TaskListQuery, f"ids={ID}&ids={ID}").ids == (ID, ID)
    assert named(f"ids={ID}&state=failed") == ["ids"]


@pytest.mark.parametrize(
    ("raw", "parameter"),
    [
        ("color=red", "color"),
        ("limit=5&limit=5", "limit"),
        ("limit=0", "limit"),
        ("limit=101", "limit"),
        ("limit=-1", "limit"),
        ("limit=5.0", "limit"),
        ("limit=%2B5", "limit"),
        ("limit=5_0", "limit"),
        ("limit=%D9%A5", "limit"),
        ("limit=", "limit"),
        ("limit=" + "9" * 5_000, "limit"),
        ("state=done", "state"),
        ("state=", "state"),
        ("type=two%20words", "type"),
        ("type=%00", "type"),
        ("name=", "name"),
        ("name=%00", "name"),
        ("name=" + "n" * 129, "name"),
        ("tag=team", "tag"),
        ("tag=:dba", "tag"),
        ("tag=a:b&tag=a:c", "tag"),
        ("&".join(f"tag=k{number}:v" for number in range(11)), "tag"),
        ("due_after=tomorrow", "due_after"),
        ("due_before=2026-12-01T09:00:00+09:00", "due_before"),
        ("order=ASC", "order"),
        ("ids=", "ids"),
        ("ids=1", "ids"),
        (f"ids={ID},", "ids"),
        ("ids=" + ",".join([str(ID)] * 101), "ids"),
        ("state=%ff", "query"),
        ("&".join(["a=b"] * 200), "query"),
        ("%00%0A=1", r"\x00\n"),
        ("=1", '""'),
    ],
)
def test_an_invalid_parameter_is_rejected_with_its_name(raw: str, parameter: str) -> None:
    """An unknown or repeated parameter, or a parameter with an invalid value, is refused by its name."""
    assert named(raw) == [parameter]


@unhurried
@given(st.text(st.sampled_from("abcdefghijklmnopqrstuvwxyz_=&%0123456789:;,+ÿ\ud800"), max_size=100))
def test_any_query_is_parsed_or_rejected(raw: str) -> None:
    """Any query is either parsed or refused with the documented error."""
    for read in (partial(read_query, TaskListQuery), no_query):
        with suppress(ParametersInvalid):
            read(raw)


def test_an_operation_without_parameters_rejects_every_parameter() -> None:
    """An operation without parameters refuses every parameter instead of ignoring it."""
    no_query("")
    with pytest.raises(ParametersInvalid) as refusal:
        no_query(f"force=true&{quote('ä')}=1")
    assert [fault.field for fault in refusal.value.faults] == ["force", "ä"]
