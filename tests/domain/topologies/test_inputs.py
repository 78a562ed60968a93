from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from duetime.domain.limits import MAX_INPUTS_BYTES
from duetime.domain.topologies.inputs import InputsTooLarge, Reference, assembled, references
from tests.domain.factories import ID
from tests.domain.topologies.graphs import node

_JSON = st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.text())


def test_a_nodes_inputs_are_the_results_of_its_named_parents() -> None:
    """A node's inputs are the results of the parents that its inputs name, without the results of other parents."""
    child = replace(node("c", "a", "b"), inputs=("b",))
    assert references(child, {"a": replace(ID, text="other"), "b": ID}) == (Reference("b", ID),)


@given(st.dictionaries(st.text(), _JSON))
def test_inputs_with_any_names_and_results_are_read_back_unchanged(results: dict[str, object]) -> None:
    """Inputs with any names and results are read back unchanged."""
    written = assembled((name, json.dumps(result, ensure_ascii=False).encode()) for name, result in results.items())
    assert json.loads(written) == results


def test_the_input_from_a_parent_without_a_result_is_null() -> None:
    """The input from a parent that failed or was skipped is null."""
    assert assembled([("a", None), ("b", b"[1]")]) == b'{"a":null,"b":[1]}'


def test_inputs_above_the_byte_limit_are_rejected_with_the_largest_result() -> None:
    """The limit applies to the complete object, and the refusal names the largest result."""
    room = MAX_INPUTS_BYTES - len(b'{"a":1,"b":""}')
    assert len(assembled([("a", b"1"), ("b", b'"' + b"x" * room + b'"')])) == MAX_INPUTS_BYTES
    with pytest.raises(InputsTooLarge, match="at least 1048577 bytes, 1048576 are allowed; the largest is 'b'"):
        assembled([("a", b"1"), ("b", b'"' + b"x" * (room + 1) + b'"')])
