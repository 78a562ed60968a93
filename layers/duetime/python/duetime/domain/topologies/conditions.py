"""The condition of a node: a JMESPath expression about how its parents have ended, and the parameters of the run.

It is asked about one document, `{"parents": {NAME: {"outcome", "result", "error"}}, "parameters": {NAME: value}}`, and
must be true or false: a misspelt field is null in JMESPath, and null is no answer. The same document always gives the
same answer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import jmespath
from jmespath.exceptions import JMESPathError
from jmespath.functions import Functions

from duetime.domain.limits import MAX_CONDITION_LENGTH, MAX_NODES
from duetime.domain.topologies.maps import MapFailed

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

    from duetime.domain.tasks.attempt_records import TaskError
    from duetime.domain.topologies.maps import NodeMap
    from duetime.domain.topologies.trigger_rules import Outcome

PARENTS, PARAMETERS = "parents", "parameters"
FIELDS = ("outcome", "result", "error")
_CHAINS = frozenset({"subexpression", "index_expression"})
_SIDE_BY_SIDE = frozenset(
    {
        *("comparator", "and_expression", "or_expression", "not_expression", "function_expression"),
        *("multi_select_list", "multi_select_dict", "key_val_pair"),
    }
)
"""Kinds of expressions all of whose parts are about the same; of others, later parts are about what the first gives."""
_WORDS: Mapping[type, str] = {type(None): "null", str: "a text", list: "a list", dict: "an object"}
_Tree: TypeAlias = "Mapping[str, Any]"
"""An expression as `jmespath` parses it: `type`, `value` and `children`."""


class ConditionInvalid(ValueError):
    """What was given as a condition is none; the message says why."""


class ConditionFailed(Exception):
    """A condition is neither true nor false; the message says why."""


@dataclass(frozen=True, slots=True)
class ParentEnd:
    """How a parent has ended.

    Attributes:
        outcome: what it counts as; `None` if it has not ended.
        result: its result, parsed; `None` if it has none.
        error: why it failed, if it did.
    """

    outcome: Outcome | None
    result: Any = None
    error: TaskError | None = None

    @property
    def document(self) -> Mapping[str, Any]:
        """It as a condition sees it."""
        error = None if self.error is None else {"type": self.error.type, "message": self.error.message}
        return {"outcome": None if self.outcome is None else self.outcome.value, "result": self.result, "error": error}


def reject_condition(expression: str, parents: Collection[str], parameters: Collection[str] | None = ()) -> None:
    """Refuse what can be told from the expression alone.

    Args:
        expression: the condition.
        parents: the names of the node's parents.
        parameters: those that a run has; `None` if it was checked before that there are those that it names.

    Raises:
        ConditionInvalid: it is too long, no JMESPath, or is about something that there is not.
    """
    if len(expression) > MAX_CONDITION_LENGTH:
        raise ConditionInvalid(f"should have at most {MAX_CONDITION_LENGTH} characters")
    try:
        tree = jmespath.compile(expression).parsed
        for function in _functions(tree):
            _reject_function(function)
        for path in _paths(tree):
            _reject_path(path, parents, parameters)
    except JMESPathError as error:
        raise ConditionInvalid(f"is not a JMESPath expression: {' '.join(str(error).split())}") from error
    except RecursionError:
        raise ConditionInvalid("has too many expressions within each other") from None


def parents_in(expression: str, parents: Sequence[str]) -> tuple[str, ...]:
    """The parents that a condition is about, in the order given; all of them, if it names none."""
    paths = _paths(jmespath.compile(expression).parsed)
    named = {path[1] if len(path) > 1 else None for path in paths if path[:1] != (PARAMETERS,)}
    return tuple(name for name in parents if None in named or name in named)


def holds(expression: str, parents: Mapping[str, ParentEnd], parameters: Mapping[str, Any]) -> bool:
    """Whether a condition is true.

    Args:
        expression: one that was not refused.
        parents: how those have ended that it is about.
        parameters: the values of the run's.

    Raises:
        ConditionFailed: it is neither true nor false, or cannot be evaluated with these results.
    """
    value = _value(expression, parents, parameters, ConditionFailed)
    if value is True or value is False:
        return value
    raise ConditionFailed(f"{expression} gives {_WORDS.get(type(value), 'a number')}, not true or false")


def items_of(node_map: NodeMap, parents: Mapping[str, ParentEnd]) -> Sequence[Any]:
    """The items that a map is run for.

    Raises:
        MapFailed: there is no list, or it has too many.
    """
    items = _value(node_map.over, parents, {}, MapFailed)
    if not isinstance(items, list):
        raise MapFailed(f"{node_map.over} gives no list")
    if len(items) > MAX_NODES:
        raise MapFailed(f"{node_map.over} gives {len(items)} items; {MAX_NODES} are allowed")
    return items


def _value(
    expression: str, parents: Mapping[str, ParentEnd], parameters: Mapping[str, Any], failed: type[Exception]
) -> Any:  # noqa: ANN401 - any JSON
    """What an expression gives.

    Args:
        expression: one that was not refused.
        parents: how those have ended that it is about.
        parameters: the values of those that it may ask.
        failed: what is raised if it cannot be evaluated with these results.
    """
    document = {PARENTS: {name: end.document for name, end in parents.items()}, PARAMETERS: parameters}
    try:
        return jmespath.compile(expression).search(document)
    except Exception as error:  # the library lets through whatever Python raises about a value of another type
        raise failed(f"{expression} cannot be evaluated: {' '.join(str(error).split())}") from error


def _functions(tree: _Tree) -> Iterator[_Tree]:
    if tree["type"] == "function_expression":
        yield tree
    for child in tree["children"] if tree["type"] != "slice" else ():
        yield from _functions(child)


def _reject_function(tree: _Tree) -> None:
    """`jmespath` knows what a function takes only when it is called."""
    name, given = tree["value"], len(tree["children"])
    known = Functions.FUNCTION_TABLE.get(name)
    if known is None:
        raise ConditionInvalid(f"calls {name}, which is not a function of JMESPath")
    wanted = len(known["signature"])
    takes_more = wanted > 0 and bool(known["signature"][-1].get("variadic"))
    if given < wanted or (given > wanted and not takes_more):
        raise ConditionInvalid(f"calls {name} with {given} arguments, not {wanted}")


def _reject_path(path: Sequence[str], parents: Collection[str], parameters: Collection[str] | None) -> None:
    if path[:1] == (PARAMETERS,):
        _reject_parameter(path, parameters)
        return
    if path and path[0] != PARENTS:
        raise ConditionInvalid(f"begins with {path[0]}: a condition is about {PARENTS}.NAME.result, .outcome or .error")
    if len(path) > 1 and path[1] not in parents:
        raise ConditionInvalid(f"names {path[1]!a}, which is not among its depends_on")
    if len(path) > 2 and path[2] not in FIELDS:  # noqa: PLR2004 - parents, NAME, and what of it
        raise ConditionInvalid(f"names {path[2]!a} of {path[1]}: it has {', '.join(FIELDS)}")


def _reject_parameter(path: Sequence[str], parameters: Collection[str] | None) -> None:
    if parameters is not None and not parameters:
        raise ConditionInvalid(f"is about {PARAMETERS}, and there are none: a topology definition can declare them")
    if parameters is not None and len(path) > 1 and path[1] not in parameters:
        raise ConditionInvalid(f"names the unknown parameter {path[1]!a}; there are {', '.join(parameters)}")


def _paths(tree: _Tree) -> Iterator[Sequence[str]]:
    """The names that lead from the whole document to what an expression is about; none for the whole."""
    kind, children = tree["type"], tree["children"]
    if kind == "field":
        yield (tree["value"],)
    elif kind in {"current", "identity"}:
        yield ()
    elif kind in _CHAINS and children[0]["type"] == "field":
        names = [child["value"] if child["type"] == "field" else None for child in children]
        end = names.index(None) if None in names else len(names)
        yield tuple(name for name in names[:end] if name is not None)
    elif children and kind != "slice":
        for child in children if kind in _SIDE_BY_SIDE else children[:1]:
            if child["type"] != "expref":
                yield from _paths(child)
