from __future__ import annotations

import json
from typing import TYPE_CHECKING

import jmespath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from duetime.domain.errors import FieldInvalid
from duetime.domain.limits import MAX_INPUTS_BYTES
from duetime.domain.tasks.attempt_records import TaskError
from duetime.domain.tasks.states import State
from duetime.domain.topologies.conditions import ConditionFailed, ParentEnd, holds, items_of
from duetime.domain.topologies.graph import Node
from duetime.domain.topologies.maps import MapFailed, NodeMap
from duetime.domain.topologies.node_status import NodeStatus, Reason
from duetime.domain.topologies.run_state import RetryPlan, retry_plan
from duetime.domain.topologies.trigger_rules import Outcome, TriggerRule
from duetime.domain.topologies.validation import validated_graph
from duetime_common.conditions import Budget, ConditionInvalid, evaluate, parents_in, reject_condition
from tests.domain.topologies.graphs import FAILED, SPEC, SUCCEEDED, graph, node

if TYPE_CHECKING:
    from collections.abc import Callable

SKIPPED = NodeStatus(State.CANCELLED, Reason.SKIPPED)
PARENTS = {
    "count": ParentEnd(Outcome.SUCCEEDED, {"rows": 3, "files": ["a", "b"], "ok": True, "name": "x"}),
    "pay-1": ParentEnd(Outcome.FAILED, None, TaskError("CardDeclined", "no money")),
    "late": ParentEnd(None),
}


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("parents.count.result.rows > `2`", True),
        ("parents.count.result.rows == `2`", False),
        ("parents.count.result.ok", True),
        ("contains(parents.count.result.files, 'b') && length(parents.count.result.files) == `2`", True),
        ("parents.\"pay-1\".error.type == 'CardDeclined'", True),
        ("parents.*.outcome | contains(@, 'failed')", True),
        ("parents.late.outcome == 'succeeded'", False),
        ("!(parents.count.outcome == 'succeeded')", False),
    ],
)
def test_a_condition_can_use_parents_outcomes_results_and_errors(expression: str, wanted: bool) -> None:  # noqa: FBT001 - a test parameter
    """A condition can use parents' outcomes, results and errors."""
    reject_condition(expression, PARENTS)
    assert holds(expression, PARENTS, {}) is wanted


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("parents.count.result.rowz > `2`", "gives null, not true or false"),
        ("parents.count.result.rows", "gives a number, not"),
        ("parents.count.result.name > `2`", "cannot be evaluated: '>' not supported"),
        ("parents.late.result.files[::0]", "gives null"),
        ("parents.count.result.files[::0]", "cannot be evaluated: slice step"),
        ("parents.count.result.files", "gives a list, not"),
        ("length(parents.count.result.rows) > `2`", "cannot be evaluated: In function length()"),
    ],
)
def test_a_condition_that_is_not_boolean_raises_an_error(expression: str, said: str) -> None:
    """A misspelled field or a value of the wrong type raises an error, and does not count as false."""
    reject_condition(expression, PARENTS)
    with pytest.raises(ConditionFailed) as failed:
        holds(expression, PARENTS, {})
    assert said in str(failed.value)


@pytest.mark.parametrize(
    ("expression", "said"),
    [
        ("", "is not a JMESPath expression"),
        ("parents.count.result.rows > ", "is not a JMESPath expression"),
        ("count.result.ok", "begins with count: a condition is about parents.NAME.result"),
        ("parents.cuont.result.ok", "names 'cuont', which is not among its depends_on"),
        ("parents.count.outcme.ok", "names 'outcme' of count: it has outcome, result, error"),
        ("(parents.count.result.files | [0]) == results.y", "begins with results"),
        ("len(parents.count.result) > `1`", "calls len, which is not a function of JMESPath"),
        ("length(parents.count.result, `1`) > `1`", "calls length with 2 arguments, not 1"),
        ("!" * 990 + "parents", "has too many nested expressions"),
        ("x" * 1001, "should have at most 1000 characters"),
    ],
)
def test_an_invalid_condition_is_rejected_at_creation_with_the_reason(expression: str, said: str) -> None:
    """Bad syntax, unknown functions, and names that are not parents or fields are refused at creation."""
    with pytest.raises(ConditionInvalid) as refused:
        reject_condition(expression, PARENTS)
    assert said in str(refused.value)


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        ("parameters.full", True),
        ("parents.count.result.rows > parameters.least", False),
        ("contains(parameters.regions, 'eu') && parents.count.result.ok", True),
        ("length(parameters) == `3`", True),
    ],
)
def test_a_condition_can_use_the_parameters_of_the_run(expression: str, wanted: bool) -> None:  # noqa: FBT001 - a test parameter
    """A condition can use the run's parameters, alone or with parents' outcomes."""
    parameters = {"full": True, "least": 5, "regions": ["eu"]}
    reject_condition(expression, PARENTS, parameters)
    assert holds(expression, PARENTS, parameters) is wanted


def test_conditions_without_a_definition_cannot_use_parameters() -> None:
    """Unknown parameters are refused, and so are all parameters in a graph without a definition."""
    with pytest.raises(ConditionInvalid, match="names the unknown parameter 'fall'; there are full, least"):
        reject_condition("parameters.fall", PARENTS, ("full", "least"))
    with pytest.raises(ConditionInvalid, match="is about parameters, and there are none: topology definitions can"):
        reject_condition("parameters.full", PARENTS)
    reject_condition("parameters.full", PARENTS, None)


def test_a_string_in_a_condition_is_not_a_parents_name() -> None:
    """A string in a condition is not mistaken for a parent's name."""
    names = ("a", "b", "c")
    assert parents_in("(parents.b.result[?name == 'x'].y | [0]) == parents.a.result", names) == ("a", "b")
    assert parents_in("length(parents) == `3`", names) == names
    assert parents_in("parameters.a && parents.b.result", names) == ("b",)
    assert parents_in("parameters.a", names) == ()
    assert parents_in("sort_by(parents.c.result, &name)[0].ok", names) == ("c",)


def test_a_condition_without_ended_parents_is_rejected_with_the_node() -> None:
    """The error for a condition names the node's field if a used parent is unknown or may not have ended."""
    condition = "parents.a.result.ok"
    for other in (
        Node("b", SPEC, when=condition),
        Node("b", SPEC, ("a",), TriggerRule.ALWAYS, when=condition),
        Node("b", SPEC, ("a",), when="parents.x.result"),
    ):
        with pytest.raises(FieldInvalid) as refused:
            validated_graph([Node("a", SPEC), other])
        assert refused.value.field == "nodes.b.when"


def test_a_retry_keeps_a_skipped_node_with_unchanged_condition_parents() -> None:
    """A retry keeps a node that was skipped by its condition, unless a parent in the condition runs again."""
    when = Node("b", SPEC, ("a",), when="parents.a.result.ok")
    found = graph("a", when, node("c", "b", trigger_rule=TriggerRule.NONE_FAILED), "d", "e: d")
    ended = {"a": SUCCEEDED, "b": SKIPPED, "c": SUCCEEDED, "d": FAILED, "e": SKIPPED}
    assert retry_plan(found, ended) == RetryPlan(again=("d", "e"), kept=("a", "b", "c"))
    ended |= {"a": FAILED}
    assert set(retry_plan(found, ended).again) == {"a", "b", "c", "d", "e"}


BOMBS = [
    # Each `|` multiplies the size; without a limit, these short conditions take seconds and hundreds of megabytes.
    "length(to_string(parents.count.outcome" + "|[@,@]" * 21 + ")) > `1`",
    "(parents.count.outcome" + "|[@,@]" * 21 + ") == (parents.count.outcome" + "|[@,@]" * 21 + ")",
    "parents.count.outcome" + "|join('',[@,@])" * 25 + " == 'x'",
    "parents.count.outcome" + "|to_string([@])" * 25 + " == 'x'",
    "parents.count.outcome" + "|{a:@,b:@}" * 21 + "|to_string(@) == 'x'",
    "`[1]`" + "|[@,@][]" * 21 + "|length(@) > `1`",
    "parents.count.outcome" + "|[@,@]" * 21 + "|contains(@, 'x')",
]
GROWING = [bomb.replace("parents.count.outcome", "parents.count.result.files") for bomb in BOMBS if "join" not in bomb]


@pytest.mark.parametrize("expression", BOMBS)
def test_a_condition_with_unbounded_growth_is_rejected_at_creation(expression: str) -> None:
    """A condition that grows without bound is refused at creation, which is possible without parents' results."""
    with pytest.raises(ConditionInvalid, match="grow without bound"):
        reject_condition(expression, PARENTS)


@pytest.mark.parametrize("expression", [*BOMBS, *GROWING, "parents.count.result.files" + "|map(&[@,@], @)" * 21])
def test_the_evaluation_of_a_condition_stops_at_its_budget(expression: str) -> None:
    """An evaluation stops when it has used up its budget, in whatever way it uses memory or time."""
    with pytest.raises(ConditionFailed, match="needs more than 1_000_000 steps"):
        holds(expression, PARENTS, {})


def test_the_size_of_a_maps_items_is_limited() -> None:
    """The size of a map's items is limited, because items that share parts in memory can be gigabytes of JSON."""
    with pytest.raises(MapFailed, match="needs more than 1_000_000 steps"):
        items_of(NodeMap("parents.count.result.files" + "|[@,@]" * 40), PARENTS)


@pytest.mark.parametrize(
    "expression",
    [
        "length(parents.rows.result[?state == 'ok' && size > `10`]) == `9900`",
        "parents.rows.result[*].name | sort(@) | [0] == 'name-1'",
        "contains(parents.rows.result[].name, 'name-19999')",
        "to_string(parents.rows.result) != ''",
        "max_by(parents.rows.result, &size).name == 'name-19'",
    ],
)
def test_the_largest_results_can_be_evaluated(expression: str) -> None:
    """The budget is enough to filter, sort and search the largest results that inputs can have."""
    rows = [{"name": f"name-{n}", "state": "ok", "size": n % 20} for n in range(22_000)]
    assert len(json.dumps(rows)) > MAX_INPUTS_BYTES
    reject_condition(expression, ("rows",))
    assert holds(expression, {"rows": ParentEnd(Outcome.SUCCEEDED, rows)}, {}) in {True, False}


_LEAVES = st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab", max_size=3)
_VALUES = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=12,
)
_ENDS = (
    *("a", "b", "[0]", "[1:]", "[]", "[*]", "[?a]", "[?@ == 'a']", "*", "[@, @]", "{a: @, b: a}", "@ == `1`", "!@"),
    *("to_string(@)", "length(@)", "sort(@)", "reverse(@)", "keys(@)", "values(@)", "type(@)", "join('-', @)"),
    *("map(&a, @)", "sort_by(@, &a)", "contains(@, 'a')", "not_null(@, 'b')", "to_array(@)", "merge(@, @)", "sum(@)"),
)
_EXPRESSIONS = st.lists(st.sampled_from(_ENDS), min_size=1, max_size=5).map(lambda parts: " | ".join(["@", *parts]))


@given(_EXPRESSIONS, _VALUES)
def test_an_evaluation_within_its_budget_has_the_result_of_jmespath(expression: str, value: object) -> None:
    """An evaluation gives the same result as jmespath, or an error of the same class."""

    def outcome(search: Callable[[], object]) -> object:
        try:
            return search()
        except Exception as error:  # noqa: BLE001 - whatever jmespath raises
            return type(error)

    bounded = outcome(lambda: evaluate(expression, value))
    assert bounded == outcome(lambda: jmespath.compile(expression).search(value))


@given(_EXPRESSIONS, _VALUES, st.integers(1, 200))
def test_the_size_of_an_evaluations_result_is_limited_by_its_steps(expression: str, value: object, steps: int) -> None:
    """The JSON of an evaluation's result has at most forty characters for each step."""
    try:
        found = evaluate(expression, value, Budget(steps))
    except Exception:  # noqa: BLE001 - only results are checked here
        return
    assert len(json.dumps(found)) <= 40 * steps
