from __future__ import annotations

import base64

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duetime.contract.http.operation import read_query
from duetime.contract.http.page_tokens import after_of, token_of
from duetime.contract.http.request_errors import ParametersInvalid
from duetime.contract.tasks.queries import TaskListQuery
from duetime.domain.ids import TaskId
from duetime.domain.times import LAST_INSTANT
from tests.contract.properties import unhurried

IDS = st.builds(TaskId.of, st.integers(0, LAST_INSTANT), st.integers(0, 2**16 - 1), st.integers(0, 2**64 - 1))
ID = TaskId.of(1_795_228_387_250, 7, 42)


@unhurried
@given(IDS, st.text(st.characters(exclude_categories=["Cs"])))
def test_a_token_decodes_to_its_id(task_id: TaskId, scope: str) -> None:
    """A list's token decodes to its id, and contains only characters allowed in a query."""
    token = token_of(task_id, scope)
    assert after_of(token, scope) == task_id
    assert token.isascii()
    assert token.replace("-", "").replace("_", "").isalnum()


@unhurried
@given(IDS, st.integers(0, 52), st.characters(categories=["L", "N"]))
def test_an_altered_token_is_rejected(task_id: TaskId, place: int, letter: str) -> None:
    """Changing any character of a token makes the token invalid."""
    token = token_of(task_id, "me")
    altered = token[:place] + letter + token[place + 1 :]
    if altered != token:
        with pytest.raises(ParametersInvalid):
            after_of(altered, "me")


@unhurried
@given(st.text())
def test_any_text_that_is_not_a_token_is_rejected(text: str) -> None:
    """Any text that is not a token is refused by the parameter's name, and raises no other error."""
    with pytest.raises(ParametersInvalid) as refusal:
        after_of(text, "me")
    assert [fault.field for fault in refusal.value.faults] == ["next_token"]


@pytest.mark.parametrize(
    "query", ["order=asc", "state=failed", "type=a", "name=a", "tag=a:b", "due_before=2026-12-01T00:00:00Z"]
)
def test_a_token_is_valid_only_for_its_list(query: str) -> None:
    """A token is refused for another owner, order or filter."""
    mine = read_query(TaskListQuery, "")
    token = token_of(ID, mine.scope("me"))
    assert after_of(token, read_query(TaskListQuery, "limit=5").scope("me")) == ID
    for scope in (read_query(TaskListQuery, query).scope("me"), mine.scope("you")):
        with pytest.raises(ParametersInvalid):
            after_of(token, scope)


def test_a_token_in_another_encoding_is_rejected() -> None:
    """A token that is only an id in base64 is refused, and so is a token with padding."""
    for made_up in (base64.urlsafe_b64encode(f"1{ID}".encode()).decode(), token_of(ID, "me") + "=", str(ID)):
        with pytest.raises(ParametersInvalid):
            after_of(made_up, "me")
