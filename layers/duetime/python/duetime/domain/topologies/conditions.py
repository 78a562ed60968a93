"""Evaluates node conditions, which are JMESPath expressions over the parents' outcomes and the run's parameters.

A condition is evaluated on the document `{"parents": {NAME: {"outcome", "result", "error"}}, "parameters": {NAME:
value}}`, and must return true or false. Null is rejected, because a misspelled field evaluates to null in JMESPath.
Evaluation is deterministic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime.domain.limits import MAX_NODES
from duetime.domain.topologies.maps import MapFailed
from duetime_common.conditions import PARAMETERS, PARENTS, evaluate
from duetime_common.frozen_classes import frozen
from duetime_common.payload_codecs import is_encrypted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from duetime.domain.tasks.attempt_records import TaskError
    from duetime.domain.topologies.maps import NodeMap
    from duetime.domain.topologies.trigger_rules import Outcome

_WORDS: Mapping[type, str] = {type(None): "null", str: "a text", list: "a list", dict: "an object"}


class ConditionFailed(Exception):
    """A condition did not return true or false; the message gives the reason."""


@frozen
class ParentEnd:
    """A parent's outcome.

    Attributes:
        outcome: the parent's outcome; `None` if the parent is open.
        result: the parent's parsed result; `None` if the parent has no result.
        error: the error, if the parent failed.
    """

    outcome: Outcome | None
    result: Any = None
    error: TaskError | None = None

    @property
    def document(self) -> Mapping[str, Any]:
        """The parent as represented in a condition's document."""
        error = None if self.error is None else {"type": self.error.type, "message": self.error.message}
        return {"outcome": None if self.outcome is None else self.outcome.value, "result": self.result, "error": error}


def holds(expression: str, parents: Mapping[str, ParentEnd], parameters: Mapping[str, Any]) -> bool:
    """Whether a condition is true.

    Args:
        expression: a valid condition.
        parents: how the referenced parents ended.
        parameters: values of the run's parameters.

    Raises:
        ConditionFailed: the value is neither true nor false, or the condition cannot be evaluated with these results.
    """
    value = _value(expression, parents, parameters, ConditionFailed)
    if value is True or value is False:
        return value
    given = _WORDS.get(type(value), "a number")
    raise ConditionFailed(f"{expression} gives {given}, not true or false{_encrypted(parents)}")


def items_of(node_map: NodeMap, parents: Mapping[str, ParentEnd]) -> Sequence[Any]:
    """Returns the items of a map.

    Raises:
        MapFailed: the value is not a list, or has too many items.
    """
    items = _value(node_map.over, parents, {}, MapFailed)
    if not isinstance(items, list):
        raise MapFailed(f"{node_map.over} is not a list{_encrypted(parents)}")
    if len(items) > MAX_NODES:
        raise MapFailed(f"{node_map.over} gives {len(items)} items; {MAX_NODES} are allowed")
    return items


def _encrypted(parents: Mapping[str, ParentEnd]) -> str:
    """Lists the parents with encrypted results, which no expression can read."""
    names = [name for name, end in parents.items() if is_encrypted(end.result)]
    return f": the result of {', '.join(names)} is encrypted" if names else ""


def _value(
    expression: str, parents: Mapping[str, ParentEnd], parameters: Mapping[str, Any], failed: type[Exception]
) -> Any:  # noqa: ANN401 - any JSON
    """Evaluates an expression.

    Args:
        expression: a valid expression.
        parents: how the referenced parents ended.
        parameters: values of the available parameters.
        failed: the exception to raise if the expression cannot be evaluated with these results.
    """
    document = {PARENTS: {name: end.document for name, end in parents.items()}, PARAMETERS: parameters}
    try:
        return evaluate(expression, document)
    except Exception as error:  # The library does not catch Python's errors about values of other types.
        raise failed(f"{expression} cannot be evaluated: {' '.join(str(error).split())}") from error
