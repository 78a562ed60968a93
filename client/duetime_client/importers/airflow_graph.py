"""Reads a DAG's tasks and their dependencies from its source, and reports parts that are computed at run time.

Source: Airflow 3.0, "DAGs", "Tasks", "TaskFlow" and `BaseOperator`: no retries by default, and five minutes between
    retries.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from datetime import timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from duetime_client.importers.draft import LONGEST_WAIT, shown, type_of
from duetime_client.importers.python_source import Called, Unknown, Values, last_name

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from duetime_client.importers.draft import Item

_OPERATORS = ("Operator", "Sensor")
_RULES = frozenset({"all_success", "all_done", "one_success", "one_failed", "none_failed", "always"})
_RETRY_DELAY = 300
_SIDES = 2
_MEANINGS = {
    "Branch": "chooses a branch: set `when` on the nodes that follow it",
    "ShortCircuit": "ends the graph early: set `when` on the nodes that follow it",
    "TriggerDagRun": "starts another DAG: write a node with the target `topology`",
    "ExternalTaskSensor": "waits for another DAG: let the other DAG create the task",
    "Empty": "does nothing: depend on its parents instead, and leave it out",
    "Dummy": "does nothing: depend on its parents instead, and leave it out",
}
"""What each kind of operator becomes in duetime, by the start of the operator's name."""
_READ = frozenset(
    {
        *("task_id", "dag", "retries", "retry_delay", "retry_exponential_backoff", "max_retry_delay", "trigger_rule"),
        *("execution_timeout", "op_kwargs", "start_date", "end_date"),
    }
)
_KNOWN = {
    "python_callable": "becomes the handler",
    "owner": "use a tag",
    "pool": "use a `lock` with `max_holders`, or a `rate`",
    "priority_weight": "use `priority`: high, normal or low",
    "depends_on_past": "use `overlap: buffer_all`, if only the order matters",
    "sla": "use `expect_success_by` of the schedule",
    "email": "use `notify_on` of the task",
    "email_on_failure": "use `notify_on` of the task",
    "email_on_retry": "has no equivalent",
    "on_failure_callback": "use `notify_on`, or a node with `trigger_rule: one_failed`",
    "on_success_callback": "use a node that depends on the task",
    "mode": "a handler that waits raises `RetryIn(seconds)`",
    "poke_interval": "a handler that waits raises `RetryIn(seconds)`",
    "queue": "queues cannot be chosen; a pull worker takes the types that it names",
    "multiple_outputs": "a result is one JSON value",
    "do_xcom_push": "a result is part of the task",
    "provide_context": "always so",
}


@dataclass(slots=True)
class Node:
    """A task of a DAG."""

    key: str
    line: int
    options: Mapping[str, Any]
    operator: str
    parents: dict[str, bool] = field(default_factory=dict)
    """The keys of the parent tasks, and whether this task takes each parent's result as an argument."""


class GraphReader:
    """Collects the tasks in the statements of a DAG.

    Args:
        values: The values of the file.
        functions: The file's functions with `@task`.
        builders: The file's functions that create tasks when they are called.
        dag: The variable that the DAG is assigned to, for tasks with `dag=`.
    """

    def __init__(
        self, values: Values, functions: Mapping[str, ast.FunctionDef], builders: frozenset[str], dag: str | None
    ) -> None:
        self.nodes: dict[str, Node] = {}
        self.problems: list[tuple[int, str]] = []
        self._values = values
        self._functions = dict(functions)
        self._builders = builders
        self._dag = dag
        self._names: dict[str, list[str]] = {}
        self._foreign: set[str] = set()

    def read(self, body: Iterable[ast.stmt]) -> None:
        """Read the statements in order."""
        for statement in body:
            match statement:
                case ast.FunctionDef():
                    if is_task_function(statement):
                        self._functions[statement.name] = statement
                case ast.Assign(targets=[ast.Name(id=name)], value=value):
                    self._assign(name, value)
                case ast.Expr(value=ast.Call() as call):
                    self._call(call)
                case ast.Expr(value=ast.BinOp() as value):
                    self._ends(value)
                case _:
                    if not isinstance(statement, ast.ClassDef) and self._has_tasks(statement):
                        self._report(statement)

    def _assign(self, name: str, value: ast.expr) -> None:
        if ends := self._ends(value):
            self._names[name] = ends
        elif self._has_tasks(value):
            self._report(value)
        elif isinstance(value, ast.Call) and self._dag is not None and _dag_of(value) not in {None, self._dag}:
            self._foreign.add(name)

    def _report(self, node: ast.stmt | ast.expr) -> None:
        self.problems.append((node.lineno, _shortened(node)))

    def _has_tasks(self, part: ast.AST) -> bool:
        """Whether a part of the source creates or uses tasks of this DAG."""
        for node in ast.walk(part):
            if isinstance(node, ast.Call) and (
                self._is_operator(node) or last_name(node.func) in self._functions.keys() | self._builders
            ):
                return True
            if isinstance(node, ast.Name) and node.id in self._names:
                return True
        return False

    def _call(self, call: ast.Call) -> None:
        match call.func:
            case ast.Attribute(attr="set_downstream" | "set_upstream" as verb, value=owner) if call.args:
                first, second = self._side(owner), self._side(call.args[0])
                self._join(*((first, second) if verb == "set_downstream" else (second, first)))
            case ast.Name(id="chain"):
                ends = [self._side(each) for each in call.args if not _is_label(each)]
                for first, second in pairwise(ends):
                    if len(first) > 1 and len(second) > 1:
                        self._join_pairs(first, second)
                    else:
                        self._join(first, second)
            case ast.Name(id="cross_downstream") if len(call.args) == _SIDES:
                self._join(self._side(call.args[0]), self._side(call.args[1]))
            case _:
                if not self._ends(call) and self._has_tasks(call):
                    self._report(call)

    def _side(self, node: ast.expr) -> list[str]:
        """The tasks on one side of a dependency; an expression that names no known task is reported."""
        ends = self._ends(node)
        is_foreign = isinstance(node, ast.Name) and node.id in self._foreign
        if not ends and not is_foreign and not _is_label(node):
            self._report(node)
        return ends

    def _join(self, first: Sequence[str], second: Sequence[str]) -> None:
        for parent in first:
            for child in second:
                self.nodes[child].parents.setdefault(parent, False)

    def _join_pairs(self, first: Sequence[str], second: Sequence[str]) -> None:
        for parent, child in zip(first, second, strict=False):
            self._join([parent], [child])

    def _ends(self, node: ast.expr) -> list[str]:
        """The tasks that an expression stands for in a dependency; dependencies within the expression are recorded."""
        match node:
            case ast.Name(id=name):
                return self._names.get(name, [])
            case ast.List(elts=parts) | ast.Tuple(elts=parts):
                return [end for part in parts for end in self._ends(part)]
            case ast.BinOp(op=ast.RShift() | ast.LShift() as direction, left=left, right=right):
                first, second = self._side(left), self._side(right)
                self._join(*((first, second) if isinstance(direction, ast.RShift) else (second, first)))
                # A label between two tasks is not part of the graph.
                return first if _is_label(right) else second
            case ast.Call() if self._is_operator(node):
                return self._operator(node)
            case ast.Call():
                return self._taskflow(node)
        return []

    def _is_operator(self, call: ast.Call) -> bool:
        return is_operator(call) and (self._dag is None or _dag_of(call) in {None, self._dag})

    def _operator(self, call: ast.Call) -> list[str]:
        called = self._values.of(call)
        key = called.argument(0, "task_id") if isinstance(called, Called) else called
        if not isinstance(called, Called) or not isinstance(key, str):
            self.problems.append((call.lineno, _shortened(call)))
            return []
        return [self._add(key, call.lineno, called.keywords, called.name)]

    def _taskflow(self, call: ast.Call) -> list[str]:
        """Add the task for a call of a function with `@task`; the call's arguments can be results of other tasks."""
        function, overridden = call.func, {}
        if isinstance(function, ast.Attribute) and function.attr in {"expand", "partial", "expand_kwargs", "map"}:
            self.problems.append((call.lineno, f"{_shortened(call)} makes tasks when it runs"))
            return []
        if isinstance(function, ast.Call) and last_name(function.func) == "override":
            values = self._values.of(function)
            overridden = dict(values.keywords) if isinstance(values, Called) else {}
            function = function.func.value if isinstance(function.func, ast.Attribute) else function
        definition = self._functions.get(last_name(function))
        if definition is None:
            return []
        options = {**self._decorator(definition), **overridden}
        given: dict[str, object] = {}
        parents: list[str] = []
        names = [each.arg for each in definition.args.args]
        arguments = [*zip(names, call.args, strict=False), *((each.arg, each.value) for each in call.keywords)]
        for name, argument in arguments:
            if ends := self._ends(argument):
                parents += ends
            elif name:
                given[name] = self._values.of(argument)
        if given:
            options["op_kwargs"] = given
        key = self._add(str(options.get("task_id", definition.name)), call.lineno, options)
        self.nodes[key].parents |= dict.fromkeys(parents, True)
        return [key]

    def _decorator(self, definition: ast.FunctionDef) -> dict[str, Any]:
        for each in definition.decorator_list:
            if isinstance(each, ast.Call) and isinstance(called := self._values.of(each), Called):
                return dict(called.keywords)
        return {}

    def _add(self, key: str, line: int, options: Mapping[str, Any], operator: str = "") -> str:
        """Add a node; like Airflow, number repeated calls of the same function."""
        wanted, number = key, 0
        while key in self.nodes:
            number += 1
            key = f"{wanted}__{number}"
        self.nodes[key] = Node(key, line, options, operator)
        return key


def is_operator(call: ast.Call) -> bool:
    """Whether a call creates a task, because it has a `task_id` or its class is named like an operator."""
    return last_name(call.func).endswith(_OPERATORS) or any(each.arg == "task_id" for each in call.keywords)


def _dag_of(call: ast.Call) -> str | None:
    """The variable name that a call passes as `dag=`."""
    dags = [each.value for each in call.keywords if each.arg == "dag"]
    return dags[0].id if dags and isinstance(dags[0], ast.Name) else None


def _is_label(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and last_name(node.func) in {"Label", "EdgeModifier"}


def is_task_function(node: ast.FunctionDef) -> bool:
    """Whether a function is decorated with `@task` or a variant of `@task`, such as `@task.bash`."""
    for each in node.decorator_list:
        called = each.func if isinstance(each, ast.Call) else each
        if last_name(called) == "task" or (isinstance(called, ast.Attribute) and last_name(called.value) == "task"):
            return True
    return False


def task_of(item: Item, node: Node, defaults: Mapping[str, Any], dag_id: str) -> dict[str, Any]:
    """Convert a node and its operator's options to the fields of a task, and report options without an equivalent."""
    options = {**defaults, **node.options}
    task: dict[str, Any] = {"type": item.draft.options.task_type or type_of(f"{dag_id}.{node.key}")}
    task["retry"] = _retry(item, node, options)
    limit = options.get("execution_timeout")
    if isinstance(limit, timedelta):
        task |= item.timeout(limit.total_seconds(), f"{node.key}.execution_timeout")
    for start, meaning in _MEANINGS.items():
        if node.operator.startswith(start):
            item.differs(node.key, f"{node.operator} {meaning}", node.line)
    payload = _payload(item, node, options)
    return {**task, "payload": payload} if payload else task


def _payload(item: Item, node: Node, options: Mapping[str, Any]) -> dict[str, Any]:
    """The payload, with the operator's arguments for which the task has no other field."""
    payload: dict[str, Any] = {}
    for name, value in options.items():
        if name in _KNOWN:
            if name in node.options:
                report_known(item, node.key, name, value, node.line)
        elif name == "op_kwargs" and isinstance(value, dict):
            payload |= _json(item, node, {str(key): each for key, each in value.items()})
        elif name not in _READ:
            payload |= _json(item, node, {name: value})
    if "{{" in repr(payload):
        item.differs(node.key, "has templates in its payload, which are not rendered", node.line)
    return payload


def report_known(item: Item, part: str, name: str, value: object, line: int = 0) -> None:
    """Report an option in use that is expressed differently in duetime or has no equivalent."""
    if name in _KNOWN and value is not None and value is not False:
        item.lost(f"{part}.{name}", f"{shown(value)}: {_KNOWN[name]}", line)


def trigger_rule(item: Item, node: Node, defaults: Mapping[str, Any]) -> dict[str, str]:
    """The trigger rule of a node; empty for the default, `all_success`."""
    rule = {**defaults, **node.options}.get("trigger_rule", "all_success")
    text = str(rule).lower().rpartition(".")[2]
    if text not in _RULES:
        item.lost(f"{node.key}.trigger_rule", f"{shown(rule)} has no equivalent: all_success", node.line)
        return {}
    return {} if text == "all_success" else {"trigger_rule": text}


def _json(item: Item, node: Node, values: Mapping[str, object]) -> dict[str, Any]:
    """The values that are valid JSON; other values are reported."""
    found: dict[str, Any] = {}
    for name, value in values.items():
        if (payload := item.payload(value, f"{node.key}.{name}")) is not None:
            found[name] = payload
    return found


def _retry(item: Item, node: Node, options: Mapping[str, Any]) -> dict[str, Any]:
    retries = options.get("retries", 0)
    if isinstance(retries, Unknown) or (attempts := item.attempts(retries, f"{node.key}.retries")) is None:
        return {"max_attempts": 1}
    if attempts == 1:
        return {"max_attempts": 1}
    delay, longest = options.get("retry_delay"), options.get("max_retry_delay")
    first = min(_seconds(delay, _RETRY_DELAY), LONGEST_WAIT)
    grows = options.get("retry_exponential_backoff") is True
    most = min(_seconds(longest, LONGEST_WAIT), LONGEST_WAIT) if grows else first
    return {
        "max_attempts": attempts,
        "initial_seconds": min(first, most),
        "multiplier": 2 if grows else 1,
        "max_seconds": most,
    }


def _seconds(value: object, otherwise: float) -> float:
    if isinstance(value, timedelta):
        return max(0.0, value.total_seconds())
    return float(value) if isinstance(value, int | float) and value >= 0 else float(otherwise)


def _shortened(node: ast.AST) -> str:
    try:
        return shown(ast.unparse(node).split("\n", 1)[0])
    except (RecursionError, ValueError):
        return "…"
