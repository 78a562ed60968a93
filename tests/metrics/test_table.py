from __future__ import annotations

import ast
import re
from functools import cache
from typing import TYPE_CHECKING

from duetime.domain.tasks.states import TERMINAL
from duetime.metrics import METRICS, Unit
from duetime_cdk.environments import FunctionName
from infra import ROOT

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

SOURCES = ("layers/duetime/python/duetime", "functions")
UNITS = {"count": Unit.COUNT, "measure": Unit.MILLISECONDS}
BY_STATE = "tasks_"
"""The prefix of metrics whose names end with a state."""
ENDED = {f"{BY_STATE}{state}" for state in TERMINAL}


@cache
def calls() -> Sequence[tuple[str, Unit, str]]:
    """Return each place in the code that counts or measures, with the metric, unit and dimension."""
    return [*_calls()]


def _calls() -> Iterator[tuple[str, Unit, str]]:
    for source in SOURCES:
        for path in sorted((ROOT / source).rglob("*.py")):
            text = path.read_text(encoding="utf-8")
            for node in ast.walk(ast.parse(text)) if "telemetry" in text else ():
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in UNITS:
                    receiver = node.func.value
                    owner = receiver.attr if isinstance(receiver, ast.Attribute) else getattr(receiver, "id", "")
                    if owner.strip("_") == "telemetry":
                        dimension = node.keywords[0].arg if node.keywords else None
                        yield from ((name, UNITS[node.func.attr], dimension or "") for name in _names(node.args[0]))


def _names(argument: ast.expr) -> set[str]:
    if isinstance(argument, ast.JoinedStr):
        first = argument.values[0]
        assert isinstance(first, ast.Constant)
        assert first.value == BY_STATE
        return ENDED
    assert isinstance(argument, ast.Constant), ast.unparse(argument)
    assert isinstance(argument.value, str)
    return {argument.value}


def test_the_table_lists_exactly_the_metrics_that_are_written() -> None:
    """Every metric that the code writes is in the table, and every metric in the table is written."""
    assert {name for name, _, _ in calls()} == set(METRICS)


def test_every_metric_has_the_unit_and_dimensions_of_the_table() -> None:
    """Each metric is written with the unit and the dimensions in the table."""
    for name, unit, dimension in calls():
        metric = METRICS[name]
        assert unit is metric.unit, name
        assert dimension in {"", metric.dimension}, name
    split = {name for name, _, dimension in calls() if dimension}
    assert split == {name for name, metric in METRICS.items() if metric.dimension}


def test_every_metric_names_functions_that_exist() -> None:
    """Every function that the table names for a metric is deployed."""
    assert {function for metric in METRICS.values() for function in metric.functions} <= set(FunctionName)


APART = {"test_table.py", "test_alarms_replayed.py"}
"""Tests that name metrics but do not run the code that counts."""
DEFECTS = {"dead_letter_errors", "expansions_failed"}
"""Metrics for defects in the code itself, which no scenario can cause."""


def test_every_metric_is_named_in_another_test() -> None:
    """Another test names each metric, unless the metric counts defects in the code."""
    named = re.compile(rf"[\"']({'|'.join(METRICS)})[\"'{{]")
    paths = (path for path in (ROOT / "tests").rglob("test_*.py") if path.name not in APART)
    seen = {name for path in paths for name in named.findall(path.read_text(encoding="utf-8"))}
    assert set(METRICS) - seen == DEFECTS
