"""Which conditions a node can have: JMESPath expressions over the outcomes of its parents and the run's parameters.

A condition is about the document `{"parents": {NAME: {"outcome", "result", "error"}}, "parameters": {NAME:
value}}`. The API and the client reject the same ones.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import jmespath
from jmespath.exceptions import JMESPathError
from jmespath.functions import Functions

from duetime_common.limits import MAX_CONDITION_LENGTH

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence

PARENTS, PARAMETERS = "parents", "parameters"
FIELDS = ("outcome", "result", "error")
_CHAINS = frozenset({"subexpression", "index_expression"})
_SIDE_BY_SIDE = frozenset(
    {
        *("comparator", "and_expression", "or_expression", "not_expression", "function_expression"),
        *("multi_select_list", "multi_select_dict", "key_val_pair"),
    }
)
"""Expression types whose parts all refer to the same value; in others, later parts refer to the first part's result."""
_Tree: TypeAlias = "Mapping[str, Any]"
"""A parsed expression of `jmespath`: `type`, `value` and `children`."""


class ConditionInvalid(ValueError):
    """A condition is invalid; the message gives the reason."""


def reject_condition(expression: str, parents: Collection[str], parameters: Collection[str] | None = ()) -> None:
    """Rejects a condition that is invalid regardless of the document.

    Args:
        expression: the condition.
        parents: names of the node's parents.
        parameters: names of the run's parameters; `None` if the names in the condition were checked before.

    Raises:
        ConditionInvalid: it is too long, not JMESPath, or refers to something that does not exist.
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
    """The parents that a condition refers to, in the given order; all of them if it names none."""
    paths = _paths(jmespath.compile(expression).parsed)
    named = {path[1] if len(path) > 1 else None for path in paths if path[:1] != (PARAMETERS,)}
    return tuple(name for name in parents if None in named or name in named)


def _functions(tree: _Tree) -> Iterator[_Tree]:
    if tree["type"] == "function_expression":
        yield tree
    for child in tree["children"] if tree["type"] != "slice" else ():
        yield from _functions(child)


def _reject_function(tree: _Tree) -> None:
    """Rejects invalid function calls, which `jmespath` would only check when it evaluates them."""
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
        raise ConditionInvalid(f"is about {PARAMETERS}, and there are none: topology definitions can declare them")
    if parameters is not None and len(path) > 1 and path[1] not in parameters:
        raise ConditionInvalid(f"names the unknown parameter {path[1]!a}; there are {', '.join(parameters)}")


def _paths(tree: _Tree) -> Iterator[Sequence[str]]:
    """The paths from the root of the document that an expression uses; an empty path for the whole document."""
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
