"""Imports Airflow DAGs as schedules of a task, or of a topology if the source shows the DAG's graph.

Source: Airflow 3.0 and 2.10, "DAGs", "DAG Runs" and "Timetables": cron expressions as croniter reads them (a matching
    day of the month or of the week suffices; seconds come last); `catchup` is true by default in Airflow 2 only; at
    most sixteen runs at once unless `max_active_runs` says otherwise.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from duetime_client.importers.airflow_graph import (
    GraphReader,
    is_operator,
    is_task_function,
    report_known,
    task_of,
    trigger_rule,
)
from duetime_client.importers.draft import LONGEST_PERIOD, rate_of, shown, type_of
from duetime_client.importers.python_source import Called, Unknown, Values, last_name, parse_python
from duetime_client.importers.text_sources import SourceUnreadable
from duetime_client.topology_validation import TopologyInvalid, validate_topology

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from duetime_client.importers.draft import Draft, Item, Source

_PRESETS = {"@quarterly": "0 0 1 */3 *"}
_CRON_TIMETABLES = frozenset({"CronTriggerTimetable", "CronDataIntervalTimetable", "DeltaTriggerTimetable"})
_DATES = frozenset({"datetime", "DateTime"})
_FIELDS, _FIELDS_WITH_SECONDS = 5, 6
_SEVERAL = 2
_READ = frozenset(
    {
        *("dag_id", "schedule", "schedule_interval", "timetable", "start_date", "end_date", "catchup", "default_args"),
        *("max_active_runs", "tags", "description", "doc_md"),
    }
)
_KNOWN = {
    "dagrun_timeout": "use `expires_seconds`, or `timeout_seconds` of the tasks",
    "params": "write the payload, or the parameters of a topology definition",
    "max_active_tasks": "use a `lock` with `max_holders`",
    "concurrency": "use a `lock` with `max_holders`",
    "on_failure_callback": "use `notify_on`",
    "on_success_callback": "use a node that depends on all others",
    "is_paused_upon_creation": "pause the schedule after `apply`",
    "render_template_as_native_obj": "templates are not rendered",
    "template_searchpath": "templates are not rendered",
    "user_defined_macros": "templates are not rendered",
    "jinja_environment_kwargs": "templates are not rendered",
    "access_control": "owners and IAM decide who may do what",
    "sla_miss_callback": "use `expect_success_by` of the schedule",
}


@dataclass(frozen=True, slots=True)
class _Dag:
    """A DAG in a file: its `DAG(…)` or `@dag(…)` call, variable name, statements, and decorated function's name."""

    call: ast.Call | None
    line: int
    variable: str | None
    body: Sequence[ast.stmt]
    function: str = ""


def import_airflow(draft: Draft, sources: Sequence[Source]) -> None:
    """Import the DAGs of all files."""
    for source in sources:
        try:
            tree = parse_python(source)
        except SourceUnreadable as error:
            draft.unreadable(source, str(error), error.line)
            continue
        dags = list(_dags(tree))
        for dag in dags:
            _import_dag(draft, source, tree, dag)
        if not dags:
            draft.unreadable(source, "has no DAG")


def _dags(tree: ast.Module) -> Iterator[_Dag]:
    """The DAGs defined by `with DAG(…)`, `dag = DAG(…)` and functions with `@dag`."""
    for node in ast.walk(tree):
        match node:
            case ast.With(items=items, body=body):
                for opened in (item.context_expr for item in items):
                    if isinstance(opened, ast.Call) and last_name(opened.func) == "DAG":
                        yield _Dag(opened, node.lineno, None, body)
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=function) as call) if (
                last_name(function) == "DAG"
            ):
                yield _Dag(call, node.lineno, name, _statements(tree.body, name))
            case ast.FunctionDef(decorator_list=decorators, body=body, name=name):
                for each in decorators:
                    called = each.func if isinstance(each, ast.Call) else each
                    if last_name(called) == "dag":
                        yield _Dag(each if isinstance(each, ast.Call) else None, node.lineno, None, body, name)


def _statements(body: Iterable[ast.stmt], variable: str) -> list[ast.stmt]:
    """The statements of a module; each `with dag:` is replaced by the statements of its body."""
    found: list[ast.stmt] = []
    for each in body:
        is_own = isinstance(each, ast.With) and any(
            isinstance(item.context_expr, ast.Name) and item.context_expr.id == variable for item in each.items
        )
        is_other = isinstance(each, ast.With) and any(
            isinstance(item.context_expr, ast.Call) and last_name(item.context_expr.func) == "DAG"
            for item in each.items
        )
        if isinstance(each, ast.With) and is_own:
            found += each.body
        elif not is_other:
            found.append(each)
    return found


def _import_dag(draft: Draft, source: Source, tree: ast.Module, dag: _Dag) -> None:
    values = Values(tree)
    called = Called("dag", [], {}) if dag.call is None else values.of(dag.call)
    if not isinstance(called, Called):
        draft.item(source, dag.line, dag.function or "DAG").omit(f"{shown(called)} is only known at run time")
        return
    name = called.argument(0, "dag_id") or dag.function
    item = draft.item(source, dag.line, shown(name))
    if not isinstance(name, str) or not name:
        item.omit("its dag_id is only known at run time", "dag_id")
        return
    defaults = called.keywords.get("default_args") or {}
    if not isinstance(defaults, dict):
        item.lost("default_args", f"{shown(defaults)} is only known at run time")
        defaults = {}
    defaults = {str(key): value for key, value in defaults.items()}
    if not _timing(item, called):
        return
    for key, value in defaults.items():
        report_known(item, "default_args", key, value)
    _dates(item, called, defaults)
    if "cron" in item.fields:
        item.zone(item.fields.get("timezone"), "start_date", "")
    _overlap(item, called)
    item.fields["task"] = _task(item, values, tree, dag, defaults)
    tags = called.keywords.get("tags")
    if isinstance(tags, list) and tags:
        item.fields["task"]["tags"] = {"airflow": ",".join(map(str, tags))[:64]}
    for key in ("description", "doc_md"):
        item.comment(called.keywords.get(key), key)
    item.unread(dict(called.keywords), _READ, "", _KNOWN)
    item.differs("schedule", "runs at the time that is written; Airflow's logical date is the start of an interval")
    draft.add(item)


def _timing(item: Item, called: Called) -> bool:
    """Set the timing; return `False` and report the DAG if it has no timing."""
    given = [key for key in ("schedule", "schedule_interval", "timetable") if key in called.keywords]
    if not given:
        item.omit(
            "has no schedule: each day in Airflow 2, none in Airflow 3; run its graph through the API", "schedule"
        )
        return False
    return _timing_of(item, called.keywords[given[0]], given[0])


def _timing_of(item: Item, value: object, part: str) -> bool:
    match value:
        case None:
            item.omit("has no schedule: run its graph through the API, or keep it as a topology definition", part)
            return False
        case str():
            return _expression(item, value.strip(), part)
        case timedelta() if value.total_seconds() >= 1:
            item.fields["rate"] = rate_of(int(value.total_seconds()))
            return True
        case Called(name=name) if name in _CRON_TIMETABLES:
            zone = value.argument(1, "timezone")
            if isinstance(zone, str):
                item.fields["timezone"] = zone
            rest = set(value.keywords) - {"cron", "delta", "timezone"}
            for each in sorted(rest):
                item.lost(f"{part}.{each}", f"{shown(value.keywords[each])} has no equivalent")
            return _timing_of(item, value.argument(0, "cron") or value.keywords.get("delta"), part)
    reason = (
        "runs after data sets: let their producer create the task" if isinstance(value, list) else "has no equivalent"
    )
    item.omit(f"{shown(value)} {reason}", part)
    return False


def _expression(item: Item, text: str, part: str) -> bool:
    if text == "@once":
        item.omit("runs once: create a task or a topology", part)
        return False
    if text == "@continuous":
        item.fields["permanent"] = {"gap_seconds": 0}
        return True
    cron = _PRESETS.get(text, text)
    fields = cron.split()
    if len(fields) == _FIELDS_WITH_SECONDS:
        item.differs(part, "has seconds last in Airflow; they are first here")
        fields = [fields[-1], *fields[:-1]]
    item.fields["cron"] = " ".join(fields)
    days = fields[-3:] if len(fields) >= _FIELDS else []
    if days and days[0] not in {"*", "?"} and days[2] not in {"*", "?"}:
        item.fields["dialect"] = "kubernetes"
    return True


def _dates(item: Item, called: Called, defaults: Mapping[str, Any]) -> None:
    for key, field in (("start_date", "start_at"), ("end_date", "end_at")):
        value = called.keywords.get(key, defaults.get(key))
        if value is None:
            continue
        moment = _moment(item, value)
        if moment is None:
            item.lost(key, f"{shown(value)} is only known at run time")
        else:
            item.fields[field] = moment


def _moment(item: Item, value: object) -> str | None:
    """A date in the source, such as `datetime(2026, 1, 1)` or `pendulum.datetime(2026, 1, 1, tz="Europe/London")`."""
    if not isinstance(value, Called) or value.name not in _DATES:
        return None
    parts = [each for each in value.arguments if isinstance(each, int)]
    zone = next((value.keywords[key] for key in ("tz", "tzinfo") if key in value.keywords), None)
    if isinstance(zone, Called):
        zone = zone.argument(0, "name")
    name = zone if isinstance(zone, str) else "UTC"
    names = ("year", "month", "day", "hour", "minute", "second")
    try:
        given = {**dict(zip(names, parts, strict=False))}
        given |= {key: each for key, each in value.keywords.items() if key in names and isinstance(each, int)}
        found = datetime(**given, tzinfo=ZoneInfo(name))
    except (ValueError, TypeError, OverflowError, ZoneInfoNotFoundError):
        return None
    if name != "UTC" and "rate" not in item.fields:
        item.fields.setdefault("timezone", name)
    if isinstance(zone, Unknown):
        item.differs("start_date", f"{shown(zone)}: read as UTC")
    return found.isoformat()


def _overlap(item: Item, called: Called) -> None:
    runs = called.keywords.get("max_active_runs")
    if "permanent" not in item.fields:
        item.fields["overlap"] = "buffer_one" if runs == 1 else "allow_all"
    if isinstance(runs, int) and runs > 1:
        item.differs(
            "max_active_runs", f"{runs}: any number of runs may overlap; a `lock` with `max_holders` limits them"
        )
    catchup = called.keywords.get("catchup")
    if catchup is True:
        item.fields |= {"catch_up_mode": "all", "catch_up_seconds": LONGEST_PERIOD}
        item.differs("catchup", "runs missed in the last 30 days are caught up; for older ones: `schedules backfills`")
    elif catchup is not False:
        item.differs("catchup", "is not given, which is true in Airflow 2: the latest missed run is caught up here")


def _task(item: Item, values: Values, tree: ast.Module, dag: _Dag, defaults: Mapping[str, Any]) -> dict[str, Any]:
    """The schedule's task: the DAG's only task, a topology, or a placeholder if the graph is computed at run time."""
    functions = {
        each.name: each for each in ast.walk(tree) if isinstance(each, ast.FunctionDef) and is_task_function(each)
    }
    reader = GraphReader(values, functions, _builders(tree), dag.variable)
    reader.read(dag.body)
    for line, text in reader.problems:
        item.lost("graph", f"{text}: the graph is made when the file runs; write it as a topology", line)
    if reader.problems or not reader.nodes:
        return {"type": item.placeholder("the graph is not carried over")}
    tasks = {node.key: task_of(item, node, defaults, item.name) for node in reader.nodes.values()}
    if len(tasks) < _SEVERAL:
        ((key, task),) = tasks.items()
        item.differs("task", f"{key}: write a handler of type {task['type']}")
        return task
    nodes: dict[str, Any] = {}
    for node in reader.nodes.values():
        inputs = [parent for parent, takes in node.parents.items() if takes]
        nodes[node.key] = {
            **tasks[node.key],
            **({"depends_on": list(node.parents)} if node.parents else {}),
            **({"inputs": inputs} if inputs else {}),
            **trigger_rule(item, node, defaults),
        }
    return _graph(item, nodes)


def _builders(tree: ast.Module) -> frozenset[str]:
    """The functions of a file that create tasks when they are called."""
    return frozenset(
        function.name
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef)
        and not is_task_function(function)
        and any(isinstance(node, ast.Call) and is_operator(node) for node in ast.walk(function))
    )


def _graph(item: Item, nodes: Mapping[str, Any]) -> dict[str, Any]:
    graph = {"nodes": nodes}
    try:
        validate_topology(graph)
    except TopologyInvalid as error:
        item.lost("graph", str(error))
        return {"type": item.placeholder("the graph is not carried over")}
    types = ", ".join(each["type"] for each in nodes.values())
    item.differs("graph", f"is a topology: write handlers of the types {shown(types)}")
    return {"type": type_of(item.name), "target": {"kind": "topology"}, "payload": graph}
