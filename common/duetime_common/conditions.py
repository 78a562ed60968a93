"""Validates and evaluates JMESPath conditions on nodes and on waits for an event.

A node's condition applies to the document `{"parents": {NAME: {"outcome", "result", "error"}}, "parameters": {NAME:
value}}`, and a wait's condition applies to the signal, `{"payload": value}`. The API and the client reject the same
conditions.

Owners write the conditions, but workers that all owners share evaluate them. Each evaluation therefore has a budget,
because even a short expression such as `[@,@]|[@,@]|…` can describe a huge value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import jmespath
from jmespath.exceptions import JMESPathError
from jmespath.functions import Functions
from jmespath.visitor import Options, TreeInterpreter

from duetime_common.limits import MAX_CONDITION_LENGTH

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

STEPS = 1_000_000
"""Maximum number of steps in an evaluation; this many steps take about a second. Filtering a 1 MB list needs a fifth of
this number."""
_STEPS_AT_CREATION = 5_000
"""Maximum number of steps on a document without results. No useful condition needs this many steps, even at the
maximum length."""
_CHARACTERS = 16
"""Number of characters whose processing takes about as long as one step."""
PARENTS, PARAMETERS, PAYLOAD = "parents", "parameters", "payload"
FIELDS = ("outcome", "result", "error")
_CHAINS = frozenset({"subexpression", "index_expression"})
_SIDE_BY_SIDE = frozenset(
    {
        *("comparator", "and_expression", "or_expression", "not_expression", "function_expression"),
        *("multi_select_list", "multi_select_dict", "key_val_pair"),
    }
)
"""Expression types whose parts all apply to the same value. In other types, later parts apply to the first part's
result."""
_Tree: TypeAlias = "Mapping[str, Any]"
"""A parsed expression of `jmespath`: `type`, `value` and `children`."""


class ConditionInvalid(ValueError):
    """A condition is invalid. The message gives the reason."""


class BudgetSpent(Exception):
    """An evaluation needs too many steps."""

    def __init__(self) -> None:
        super().__init__(f"it needs more than {STEPS:_} steps: it builds or compares values that are too large")


class Budget:
    """Counts the steps of one evaluation.

    The size of a value is the number of elements in its JSON, plus one per 16 characters of text. A value can contain
    the same part many times, so its size can far exceed the memory that the value takes.

    Attributes:
        left: steps left; negative if the budget is spent.
    """

    def __init__(self, steps: int) -> None:
        self.left = steps
        # Each size is stored with its value to keep the value alive, because Python reuses the ids of deleted values.
        self._sizes: dict[int, tuple[object, int]] = {}

    def spend(self, steps: int) -> None:
        """Count steps.

        Raises:
            BudgetSpent: not enough steps are left.
        """
        self.left -= steps
        if self.left < 0:
            raise BudgetSpent

    def size(self, value: object) -> int:
        """Return the size of a value. Each part of the value is visited only once per evaluation."""
        if isinstance(value, str):
            return 1 + len(value) // _CHARACTERS
        if not isinstance(value, list | dict):
            return 1
        known = self._sizes.get(id(value))
        if known is None:
            self.spend(len(value))
            parts = sum(map(self.size, value.values() if isinstance(value, dict) else value))
            keys = sum(map(self.size, value)) if isinstance(value, dict) else 0
            known = self._sizes[id(value)] = (value, 1 + keys + parts)
        return known[1]


class _BoundedFunctions(Functions):
    """JMESPath functions that spend steps for the size of their arguments before they run."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget

    def call_function(self, function_name: str, resolved_args: Any) -> Any:  # noqa: ANN401 - any JSON
        """Call a function."""
        self._budget.spend(sum(map(self._budget.size, resolved_args)))
        if function_name == "join" and isinstance(resolved_args[0], str) and isinstance(resolved_args[1], list):
            # `join` is the only function whose result can be larger than its arguments.
            self._budget.spend(self._budget.size(resolved_args[0]) * len(resolved_args[1]))
        return super().call_function(function_name, resolved_args)


class _BoundedInterpreter(TreeInterpreter):
    """Evaluates a parsed expression within a budget."""

    def __init__(self, budget: Budget) -> None:
        super().__init__(Options(custom_functions=_BoundedFunctions(budget)))
        self._budget = budget
        # This table replaces the class's table for this evaluation.
        comparisons = {name: self._paying(each) for name, each in TreeInterpreter.COMPARATOR_FUNC.items()}
        self.COMPARATOR_FUNC = comparisons  # type: ignore[misc]

    def visit(self, node: Any, *args: object, **kwargs: object) -> Any:  # noqa: ANN401 - any JSON
        """Evaluate a part of the expression."""
        self._budget.spend(1)
        return super().visit(node, *args, **kwargs)

    def _paying(self, compare: Callable[[Any, Any], object]) -> Callable[[Any, Any], object]:
        """Return a comparison that spends steps for the size of the values, because nested values are also compared."""

        def paid(left: object, right: object) -> object:
            self._budget.spend(min(self._budget.size(left), self._budget.size(right)))
            return compare(left, right)

        return paid

    def visit_flatten(self, node: Any, value: object) -> Any:  # noqa: ANN401 - any JSON
        """Flatten a list, which copies its inner lists."""
        merged = super().visit_flatten(node, value)
        self._budget.spend(len(merged or ()))
        return merged

    def visit_slice(self, node: Any, value: object) -> Any:  # noqa: ANN401 - any JSON
        """Copy a part of a list."""
        part = super().visit_slice(node, value)
        self._budget.spend(len(part or ()))
        return part


def evaluate(expression: str, document: object, budget: Budget | None = None) -> Any:  # noqa: ANN401 - any JSON
    """Evaluates a valid expression.

    Args:
        expression: the expression.
        document: the document to evaluate the expression on.
        budget: maximum number of steps; `None` for the default.

    Raises:
        BudgetSpent: the evaluation takes too many steps, or its result is too large.
        Exception: any error that `jmespath` or Python raises for a value of the wrong type.
    """
    budget = budget or Budget(STEPS)
    value = _BoundedInterpreter(budget).visit(jmespath.compile(expression).parsed, document)
    budget.spend(budget.size(value))
    return value


def reject_condition(expression: str, parents: Collection[str], parameters: Collection[str] | None = ()) -> None:
    """Rejects a condition that is invalid for every document.

    Args:
        expression: the condition.
        parents: names of the node's parents.
        parameters: names of the run's parameters; `None` if the names in the condition were checked before.

    Raises:
        ConditionInvalid: the condition is too long, not JMESPath, or refers to something that does not exist.
    """
    ended = {"outcome": "succeeded", "result": None, "error": None}

    def reject_paths(tree: _Tree) -> None:
        for path in _paths(tree):
            _reject_path(path, parents, parameters)

    _reject(expression, {PARENTS: dict.fromkeys(parents, ended), PARAMETERS: {}}, reject_paths)


def reject_signal_condition(expression: str) -> None:
    """Rejects a condition on a signal that is invalid for every signal.

    Raises:
        ConditionInvalid: the condition is too long, not JMESPath, or refers to something that does not exist.
    """

    def reject_paths(tree: _Tree) -> None:
        for path in _paths(tree):
            if path and path[0] != PAYLOAD:
                raise ConditionInvalid(f"begins with {path[0]}: a condition on a signal is about {PAYLOAD}")

    _reject(expression, {PAYLOAD: None}, reject_paths)


def reject_expression(expression: str) -> None:
    """Rejects an expression that is invalid for every document.

    Raises:
        ConditionInvalid: the expression is too long, or is not a JMESPath expression.
    """
    _reject(expression, {}, lambda _: None)


def _reject(expression: str, document: object, reject_paths: Callable[[_Tree], None]) -> None:
    """Rejects an expression that is invalid or that takes too many steps on a small document."""
    if len(expression) > MAX_CONDITION_LENGTH:
        raise ConditionInvalid(f"should have at most {MAX_CONDITION_LENGTH} characters")
    try:
        tree = jmespath.compile(expression).parsed
        for function in _functions(tree):
            _reject_function(function)
        reject_paths(tree)
        _reject_bomb(expression, document)
    except JMESPathError as error:
        raise ConditionInvalid(f"is not a JMESPath expression: {' '.join(str(error).split())}") from error
    except RecursionError:
        raise ConditionInvalid("has too many nested expressions") from None


def parents_in(expression: str, parents: Sequence[str]) -> tuple[str, ...]:
    """The parents that a condition refers to, in the given order; all parents if it uses `parents` as a whole."""
    paths = _paths(jmespath.compile(expression).parsed)
    named = {path[1] if len(path) > 1 else None for path in paths if path[:1] != (PARAMETERS,)}
    return tuple(name for name in parents if None in named or name in named)


def _functions(tree: _Tree) -> Iterator[_Tree]:
    if tree["type"] == "function_expression":
        yield tree
    for child in tree["children"] if tree["type"] != "slice" else ():
        yield from _functions(child)


def _reject_bomb(expression: str, document: object) -> None:
    """Rejects an expression that builds large values even from a small document."""
    try:
        evaluate(expression, document, Budget(_STEPS_AT_CREATION))
    except BudgetSpent:
        raise ConditionInvalid("builds or compares values that grow without bound") from None
    except RecursionError:
        raise
    except Exception:  # noqa: BLE001, S110 - without results, an expression may have no value
        pass


def _reject_function(tree: _Tree) -> None:
    """Rejects invalid function calls, which `jmespath` checks only during evaluation."""
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
    if len(path) > 2 and path[2] not in FIELDS:  # noqa: PLR2004 - parents, NAME, FIELD
        raise ConditionInvalid(f"names {path[2]!a} of {path[1]}: it has {', '.join(FIELDS)}")


def _reject_parameter(path: Sequence[str], parameters: Collection[str] | None) -> None:
    if parameters is not None and not parameters:
        raise ConditionInvalid(f"is about {PARAMETERS}, and there are none: topology definitions can declare them")
    if parameters is not None and len(path) > 1 and path[1] not in parameters:
        raise ConditionInvalid(f"names the unknown parameter {path[1]!a}; there are {', '.join(parameters)}")


def _paths(tree: _Tree) -> Iterator[Sequence[str]]:
    """Yield the paths from the document's root that an expression uses; an empty path stands for the whole document."""
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
