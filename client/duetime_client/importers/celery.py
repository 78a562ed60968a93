"""Imports Celery's `beat_schedule` as schedules, with the options of the tasks that the same files define.

Source: Celery 5.6, "Periodic Tasks" and "Tasks": `crontab` runs on days that both the day of the month and the day of
    the week match; an interval is counted from the start of beat; runs can overlap; a task is retried only on request,
    by default after 180 s and at most three times.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from duetime_client.importers.celery_options import CALL_OPTIONS, SETTING_PREFIXES, SETTINGS, TASK_OPTIONS
from duetime_client.importers.draft import LONGEST_PERIOD, LONGEST_WAIT, Outcome, rate_of, shown, shown_setting, type_of
from duetime_client.importers.python_source import Called, Unknown, Values, last_name, parse_python
from duetime_client.importers.text_sources import SourceUnreadable

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from duetime_client.importers.draft import Draft, Item, Source

_SCHEDULES = frozenset({"beat_schedule", "celery_beat_schedule", "celerybeat_schedule"})
_DECORATORS = frozenset({"task", "shared_task", "periodic_task"})
_CRON_FIELDS = ("minute", "hour", "day_of_week", "day_of_month", "month_of_year")
_CARRIED = frozenset({"name", "bind", "max_retries", "default_retry_delay", "rate_limit", "time_limit"})
_RETRIES = frozenset({"autoretry_for", "retry_backoff", "retry_backoff_max", "retry_jitter", "retry_kwargs"})
_PERIODS = {"s": 1, "m": 60, "h": 3_600}
_RETRY_DELAY = 180
_RETRIES_BY_DEFAULT = 3
_BACKOFF_MAX = 600
_OLD_PREFIX = "celery_"


@dataclass(frozen=True, slots=True)
class _Task:
    """A task that a file defines."""

    names: frozenset[str]
    explicit: str
    parameters: Sequence[str]
    options: Mapping[str, Any]


@dataclass(slots=True)
class _File:
    """A parsed file."""

    source: Source
    tree: ast.Module
    values: Values
    settings: list[tuple[str, int, ast.expr]] = field(default_factory=list)


def import_celery(draft: Draft, sources: Sequence[Source]) -> None:
    """Import the entries of `beat_schedule` and the calls of `add_periodic_task` in all files."""
    files = []
    for source in sources:
        try:
            tree = parse_python(source)
        except SourceUnreadable as error:
            draft.unreadable(source, str(error), error.line)
            continue
        files.append(_File(source, tree, Values(tree)))
    tasks = [task for file in files for task in _tasks(draft, file)]
    for file in files:
        file.settings = list(_settings(file.tree))
    zone = next(filter(None, map(_zone, files)), "")
    for file in files:
        before = len(draft.schedules) + len(draft.findings)
        _report_settings(draft, file)
        _report_elsewhere(draft, file)
        for item, call in _entries(draft, file):
            _import_entry(item, call, tasks, _zone(file) or zone)
        if not tasks and len(draft.schedules) + len(draft.findings) == before:
            draft.unreadable(file.source, "has no beat_schedule, no add_periodic_task and no Celery settings")


def _tasks(draft: Draft, file: _File) -> Iterator[_Task]:
    """The tasks that a file defines: functions with `@app.task` or `@shared_task`."""
    for node in ast.walk(file.tree):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for decorator in node.decorator_list:
            called = decorator.func if isinstance(decorator, ast.Call) else decorator
            if last_name(called) not in _DECORATORS:
                continue
            keywords = decorator.keywords if isinstance(decorator, ast.Call) else []
            options = {each.arg: file.values.of(each.value) for each in keywords if each.arg}
            parameters = [each.arg for each in (*node.args.posonlyargs, *node.args.args)]
            name = options.get("name")
            if last_name(called) == "periodic_task":
                draft.item(file.source, node.lineno, node.name).omit("is a periodic_task of Celery 4: add its entry")
            explicit = name if isinstance(name, str) else ""
            names = frozenset({node.name, explicit or _qualified(file.source, node.name)})
            yield _Task(names, explicit, parameters[1:] if options.get("bind") is True else parameters, options)


def _qualified(source: Source, function: str) -> str:
    """The end of a task's automatic name: the module and the function."""
    module = source.name.replace("\\", "/").rpartition("/")[2].removesuffix(".py")
    return f"{module}.{function}"


def _settings(tree: ast.Module) -> Iterator[tuple[str, int, ast.expr]]:
    """The settings (lowercase name, line, value) in `conf.x = …`, `conf.update(x=…)`, `CELERY = {…}` and variables."""
    for node in ast.walk(tree):
        match node:
            case ast.Assign(targets=[target], value=value) | ast.AnnAssign(target=target, value=ast.expr() as value):
                if isinstance(target, ast.Name) and target.id == "CELERY":
                    yield from _in_mapping(value)
                elif name := _setting(target):
                    yield name, node.lineno, value
            case ast.Call(func=ast.Attribute(attr="update", value=owner)) if _is_conf(owner):
                yield from _in_call(node)
            case ast.Call(keywords=keywords):
                for each in keywords:
                    if each.arg == "CELERY":
                        yield from _in_mapping(each.value)


def _in_call(node: ast.Call) -> Iterator[tuple[str, int, ast.expr]]:
    yield from ((each.arg, each.value.lineno, each.value) for each in node.keywords if each.arg)
    for argument in (*node.args, *(each.value for each in node.keywords if each.arg is None)):
        yield from _in_mapping(argument)


def _in_mapping(node: ast.expr) -> Iterator[tuple[str, int, ast.expr]]:
    """The settings in `{"x": …}` or `dict(x=…)`; any other expression is one unreadable setting named `update`."""
    match node:
        case ast.Dict(keys=keys, values=values):
            for key, value in zip(keys, values, strict=True):
                name = key.value if isinstance(key, ast.Constant) else None
                yield name.lower() if isinstance(name, str) else "update", value.lineno, value
        case ast.Call(func=ast.Name(id="dict")):
            yield from _in_call(node)
        case _:
            yield "update", node.lineno, node


def _setting(target: ast.expr) -> str:
    match target:
        case ast.Attribute(attr=name, value=owner) if _is_conf(owner):
            return name
        case ast.Subscript(value=owner, slice=ast.Constant(value=str() as name)) if _is_conf(owner):
            return name.lower()
        case ast.Name(id=name):
            lowered = name.lower().removeprefix(_OLD_PREFIX)
            known = lowered in SETTINGS or lowered in _SCHEDULES or name.startswith("CELERY_")
            return lowered if known or lowered.startswith("broker_") else ""
    return ""


def _is_conf(owner: ast.expr) -> bool:
    return last_name(owner) == "conf"


def _zone(file: _File) -> str:
    values = (file.values.of(node) for name, _, node in file.settings if name == "timezone")
    return next((value for value in values if isinstance(value, str)), "")


def _report_settings(draft: Draft, file: _File) -> None:
    for name, line, node in file.settings:
        if name in _SCHEDULES:
            continue
        value = file.values.of(node)
        if name == "timezone" and isinstance(value, str):
            continue
        if name in SETTINGS:
            text = SETTINGS[name]
        elif name.startswith(SETTING_PREFIXES):
            text = "none: settings of brokers, backends and workers have no counterpart"
        else:
            text = "is only known at run time, or is not a known Celery setting"
        draft.note(file.source, line, "conf", name, Outcome.LOST, f"{shown_setting(name, value)}: {text}")


def _report_elsewhere(draft: Draft, file: _File) -> None:
    """Report that settings are loaded from another module, which the user should import as well."""
    for node in ast.walk(file.tree):
        if isinstance(node, ast.Call) and last_name(node.func) in {"config_from_object", "config_from_envvar"}:
            text = f"{shown(file.values.of(node))}: import that file, too"
            draft.note(file.source, node.lineno, "conf", last_name(node.func), Outcome.LOST, text)


def _entries(draft: Draft, file: _File) -> Iterator[tuple[Item, object]]:
    """The entries with their fields, from dictionaries, single assignments and calls of `add_periodic_task`."""
    for name, line, node in file.settings:
        if name in _SCHEDULES:
            yield from _of_mapping(draft, file, line, node)
    for each in ast.walk(file.tree):
        match each:
            case ast.Assign(targets=[ast.Subscript(value=owner, slice=key)], value=value) if (
                last_name(owner).lower() in _SCHEDULES
            ):
                yield _named(draft, file, key, value)
            case ast.Call(func=ast.Attribute(attr="update", value=owner), args=[node]) if (
                last_name(owner).lower() in _SCHEDULES
            ):
                yield from _of_mapping(draft, file, each.lineno, node)
            case ast.Call(func=ast.Attribute(attr="add_periodic_task")):
                yield _of_call(draft, file, each)


def _of_mapping(draft: Draft, file: _File, line: int, node: ast.expr) -> Iterator[tuple[Item, object]]:
    if not isinstance(node, ast.Dict):
        value = file.values.of(node)
        if not isinstance(value, dict):
            draft.item(file.source, line, "beat_schedule").omit(f"{shown(value)} is only known at run time")
            return
        for key, each in value.items():
            yield draft.item(file.source, line, str(key)), each
        return
    for key, value_node in zip(node.keys, node.values, strict=True):
        if key is None:
            yield from _of_mapping(draft, file, value_node.lineno, value_node)
        else:
            yield _named(draft, file, key, value_node)


def _named(draft: Draft, file: _File, key: ast.expr, value: ast.expr) -> tuple[Item, object]:
    """An entry named after its key; if the key is known only at run time, its `Unknown` value is returned instead."""
    name = file.values.of(key)
    return draft.item(file.source, key.lineno, shown(name)), file.values.of(value) if isinstance(name, str) else name


def _of_call(draft: Draft, file: _File, node: ast.Call) -> tuple[Item, object]:
    """Convert a call of `add_periodic_task(schedule, task.s(…), name=…)` to an entry."""
    call = file.values.of(node)
    if not isinstance(call, Called):
        return draft.item(file.source, node.lineno, "add_periodic_task"), call
    signature = call.argument(1, "sig")
    task: object = signature
    if len(node.args) > 1 and isinstance(node.args[1], ast.Call) and isinstance(node.args[1].func, ast.Attribute):
        task = last_name(node.args[1].func.value) or signature
    given = call.keywords.get("name")
    name = given if isinstance(given, str) else str(task)
    entry: dict[str, object] = {"task": task, "schedule": call.argument(0, "schedule")}
    if isinstance(signature, Called):
        entry |= {"args": list(signature.arguments), "kwargs": dict(signature.keywords)}
    options = {key: value for key, value in call.keywords.items() if key not in {"name", "sig", "schedule"}}
    return draft.item(file.source, node.lineno, name), {**entry, "options": options}


def _import_entry(item: Item, entry: object, tasks: Sequence[_Task], zone: str) -> None:
    if not isinstance(entry, dict):
        item.omit(f"{shown(entry)} is only known at run time")
        return
    name = entry.get("task")
    if not isinstance(name, str):
        item.omit(f"task: {shown(name)} is only known at run time")
        return
    if not _timing(item, entry.get("schedule")):
        return
    if "cron" in item.fields and (zone or item.draft.options.timezone):
        item.fields["timezone"] = zone or item.draft.options.timezone
    definition = next((each for each in tasks if name in each.names), None) or _by_suffix(name, tasks)
    name = (definition.explicit if definition else "") or name
    task: dict[str, Any] = {"type": item.draft.options.task_type or type_of(name)}
    if task["type"] != name and not item.draft.options.task_type:
        item.differs("task", f"has the type {task['type']}")
    item.fields |= {"overlap": "allow_all", "task": task}
    _payload(item, entry, definition)
    if definition is None:
        item.differs(
            "task", "is not defined in these files: it gets five attempts, where Celery retries on request only"
        )
    else:
        _options_of_task(item, definition.options)
    _options_of_call(item, entry.get("options") or {})
    if entry.get("relative"):
        item.differs("relative", "a rate is counted from `start_at`, else from the creation of the schedule")
    item.unread(entry, frozenset({"task", "schedule", "args", "kwargs", "options", "relative"}), "", {})
    item.draft.add(item)


def _by_suffix(name: str, tasks: Sequence[_Task]) -> _Task | None:
    """The task whose module and function match the end of a name; `None` unless exactly one task matches."""
    found = [task for task in tasks if any("." in each and name.endswith(f".{each}") for each in task.names)]
    return found[0] if len(found) == 1 else None


def _timing(item: Item, schedule: object) -> bool:
    """Set the timing; return `False` and report the entry if the timing cannot be carried over."""
    if isinstance(schedule, Called):
        match schedule.name:
            case "crontab":
                return _crontab(item, schedule)
            case "schedule":
                return _timing(item, schedule.argument(0, "run_every"))
            case "solar":
                item.omit("solar schedules have no equivalent: write a schedule that is near enough", "schedule")
                return False
    if isinstance(schedule, timedelta):
        schedule = schedule.total_seconds()
    if isinstance(schedule, bool) or not isinstance(schedule, int | float):
        item.omit(f"{shown(schedule)} is only known at run time", "schedule")
        return False
    if schedule < 1:
        item.omit(f"every {schedule:g} s: the shortest rate is one second", "schedule")
        return False
    if schedule != int(schedule):
        item.differs("schedule", f"{schedule:g} s: rates are in whole seconds")
    item.fields["rate"] = rate_of(int(schedule))
    return True


def _crontab(item: Item, call: Called) -> bool:
    fields = {name: call.argument(position, name) for position, name in enumerate(_CRON_FIELDS)}
    unknown = set(call.keywords) - set(_CRON_FIELDS)
    texts = {name: _cron_field(value) for name, value in fields.items()}
    if unknown or None in texts.values():
        item.omit(f"{shown(call)} is only known at run time", "schedule")
        return False
    minute, hour, weekday, day, month = texts.values()
    both = weekday != "*" and day != "*"
    item.fields["cron"] = " ".join([*(["0"] if both else []), *map(str, (minute, hour, day, month, weekday))])
    if both:
        item.fields["dialect"] = "spring"
    return True


def _cron_field(value: object) -> str | None:
    match value:
        case None:
            return "*"
        case bool():
            return None
        case int() | str():
            return "".join(str(value).split()) or None
        case list() if value and all(isinstance(each, int | str) for each in value):
            return ",".join(map(str, value))
    return None


def _payload(item: Item, entry: Mapping[str, Any], definition: _Task | None) -> None:
    args, kwargs = entry.get("args") or [], entry.get("kwargs") or {}
    if not isinstance(args, list) or not isinstance(kwargs, dict):
        item.lost("args", f"{shown(args or kwargs)} is only known at run time")
        return
    if not args and not kwargs:
        return
    if definition is not None and len(args) <= len(definition.parameters):
        value: object = {**dict(zip(definition.parameters, args, strict=False)), **kwargs}
    elif args:
        value = {"args": args, "kwargs": kwargs}
        item.differs("args", "have no names here: the payload is {args, kwargs}")
    else:
        value = kwargs
    payload = item.payload(value, "args" if args else "kwargs")
    if payload is not None:
        item.fields["task"]["payload"] = payload


def _options_of_task(item: Item, options: Mapping[str, Any]) -> None:
    """Convert the options of the task's decorator."""
    task = item.fields["task"]
    task["retry"] = _retry(item, options)
    if (limit := _rate(options.get("rate_limit"))) is not None:
        task["rate"] = {"key": type_of(task["type"]).replace("/", "."), **limit}
        item.differs("rate_limit", "counts over all workers, where Celery counts in each")
    elif options.get("rate_limit"):
        item.lost("rate_limit", f"{shown(options['rate_limit'])} is not a rate")
    seconds = options.get("time_limit")
    if isinstance(seconds, int | float):
        task |= item.timeout(seconds, "time_limit")
    for name, value in options.items():
        if name not in _CARRIED | _RETRIES:
            item.lost(f"@task {name}", f"{shown(value)}: {TASK_OPTIONS.get(name, 'is not a Celery option')}")


def _retry(item: Item, options: Mapping[str, Any]) -> dict[str, Any]:
    """The retry policy; a task without `autoretry_for` is retried only where it calls `self.retry`."""
    if "autoretry_for" not in options:
        if options.keys() & {"max_retries", "default_retry_delay"}:
            item.differs("max_retries", "only errors that call `self.retry` are retried: `raise RetryIn(seconds)`")
        else:
            return {"max_attempts": 1}
    else:
        item.differs("autoretry_for", f"{shown(options['autoretry_for'])}: write retry_on=… at the handler")
    kwargs = options.get("retry_kwargs")
    given = {**options, **kwargs} if isinstance(kwargs, dict) else dict(options)
    retries = given.get("max_retries", _RETRIES_BY_DEFAULT)
    attempts = item.attempts(10_000 if retries is None else retries, "max_retries")
    found: dict[str, Any] = {} if attempts is None else {"max_attempts": attempts}
    if backoff := given.get("retry_backoff"):
        first, most = _number(backoff, 1.0), _number(given.get("retry_backoff_max"), _BACKOFF_MAX)
        most = min(most, LONGEST_WAIT)
        return {**found, "initial_seconds": min(max(1.0, first), most), "multiplier": 2, "max_seconds": most}
    delay = min(_number(given.get("countdown", given.get("default_retry_delay")), _RETRY_DELAY), LONGEST_WAIT)
    item.differs(
        "default_retry_delay", f"waits up to {delay:g} s: duetime's waits have jitter, Celery's here have none"
    )
    return {**found, "initial_seconds": delay, "multiplier": 1, "max_seconds": delay}


def _number(value: object, otherwise: float) -> float:
    if isinstance(value, timedelta):
        return value.total_seconds()
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and value > 0
    return float(value) if is_number else otherwise  # type: ignore[arg-type]  # `is_number` shows that it is a number


def _rate(value: object) -> dict[str, int] | None:
    """Parse a rate limit such as `10/m`; a number without a unit is per second."""
    number, _, period = str(value).partition("/")
    if not number.isdigit() or int(number) < 1 or period not in {"", *_PERIODS}:
        return None
    return {"limit": int(number), "per_seconds": _PERIODS.get(period, 1)}


def _options_of_call(item: Item, options: object) -> None:
    if isinstance(options, Unknown) or not isinstance(options, dict):
        item.lost("options", f"{shown(options)} is only known at run time")
        return
    for name, value in options.items():
        seconds = value.total_seconds() if isinstance(value, timedelta) else value
        if name == "expires" and isinstance(seconds, int | float) and 1 <= seconds <= LONGEST_PERIOD:
            item.fields["task"]["expires_seconds"] = int(seconds)
        else:
            counterpart = CALL_OPTIONS.get(str(name), "is not a Celery option")
            item.lost(f"options.{name}", f"{shown(value)}: {counterpart}")
