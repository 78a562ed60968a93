"""Imports Quartz jobs and triggers from `job_scheduling_data` XML and from properties with cron expressions.

Source: Quartz 2.3, `job_scheduling_data_2_0.xsd`, "Configuration Reference" and CronTrigger: expressions begin with
    seconds and can end with a year, Sunday is 1; runs of a job can overlap unless its class has
    `@DisallowConcurrentExecution`; a job is not retried.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from xml.parsers import expat

from duetime_client.importers.draft import Outcome, rate_of, shown, shown_setting, type_of
from duetime_client.importers.text_sources import SourceUnreadable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from duetime_client.importers.draft import Draft, Item, Source

_DEEPEST = 30
_CRON = re.compile(r"\S+(?:\s+\S+){5,6}")
_CRON_WORD = re.compile(r"[0-9*?/,\-LW#A-Za-z]+")
_PROPERTY = re.compile(r"\s*(?P<key>(?:\\.|[^=:\s\\])+)(?:\s*[=:\s]\s*(?P<value>.*))?")
_UNITS = {"SECOND": "S", "MINUTE": "M", "HOUR": "H", "DAY": "D", "WEEK": "W", "MONTH": "M", "YEAR": "Y"}
_CLOCK = frozenset({"SECOND", "MINUTE", "HOUR"})
_MILLISECONDS = 1_000
_JOB = frozenset({"name", "group", "description", "job-class", "job-data-map"})
_KNOWN_JOB = {
    "durability": "a handler needs no trigger to exist",
    "recover": "always so: a lost worker's task runs again",
}
_TRIGGER = frozenset(
    {
        *("name", "group", "description", "job-name", "job-group", "job-data-map", "cron-expression", "time-zone"),
        *("repeat-count", "repeat-interval", "repeat-interval-unit", "start-time", "end-time", "misfire-instruction"),
    }
)
_KNOWN_TRIGGER = {
    "priority": "`priority` of the task: high, normal or low",
    "calendar-name": "put the dates into a calendar, and name it in `calendars`",
    "start-time-seconds-in-future": "the schedule starts when it is created, or at `start_at`",
}
_SETTINGS = {
    "org.quartz.threadPool.": "Lambda runs the handlers; for a pull worker, `Worker(concurrency=…)`",
    "org.quartz.jobStore.": "schedules and tasks are in DynamoDB",
    "org.quartz.dataSource.": "schedules and tasks are in DynamoDB",
    "org.quartz.scheduler.": "the trigger runs automatically",
    "org.quartz.plugin.jobInitializer.fileNames": "import these files, too",
    "org.quartz.plugin.": "there are no plugins: see events and callbacks",
    "org.quartz.": "has no equivalent",
}


@dataclass(slots=True)
class _Element:
    """An XML element with its line number."""

    name: str
    line: int
    text: str = ""
    children: list[_Element] = field(default_factory=list)

    def first(self, name: str) -> str:
        """The text of the first child with a name; empty if there is no such child."""
        return next((each.text.strip() for each in self.children if each.name == name), "")

    def each(self, name: str) -> Iterator[_Element]:
        """The children with the given name."""
        return (each for each in self.children if each.name == name)


def import_quartz(draft: Draft, sources: Sequence[Source]) -> None:
    """Import the triggers in XML files and the cron expressions in properties files."""
    for source in sources:
        if not source.text.lstrip().startswith("<"):
            _import_properties(draft, source)
            continue
        try:
            root = _parsed(source)
        except SourceUnreadable as error:
            draft.unreadable(source, str(error), error.line)
            continue
        if root.name != "job-scheduling-data":
            draft.unreadable(source, f"is {root.name}, not job-scheduling-data of Quartz 2", root.line)
            continue
        _import_data(draft, source, root)


def _parsed(source: Source) -> _Element:
    """Parse an XML document; a DOCTYPE is rejected, so no entity is expanded and nothing is fetched.

    Raises:
        SourceUnreadable: The file is not XML, has a DOCTYPE, or is nested too deeply.
    """
    parser = expat.ParserCreate()
    top = _Element("", 0)
    path = [top]

    def refuse(*_: object) -> None:
        raise SourceUnreadable("has a DOCTYPE, which is not read: remove it", parser.CurrentLineNumber)

    def start(name: str, _: object) -> None:
        if len(path) > _DEEPEST:
            raise SourceUnreadable("is nested too deeply", parser.CurrentLineNumber)
        made = _Element(name.rpartition(":")[2], parser.CurrentLineNumber)
        path[-1].children.append(made)
        path.append(made)

    def characters(text: str) -> None:
        path[-1].text += text

    parser.buffer_text = True
    parser.StartDoctypeDeclHandler = refuse
    parser.StartElementHandler = start
    parser.EndElementHandler = lambda _: path.pop()
    parser.CharacterDataHandler = characters
    try:
        # The text is already decoded, so the XML declaration and its encoding are removed.
        parser.Parse(re.sub(r"^\s*<\?xml.*?\?>", "", source.text, count=1, flags=re.DOTALL), True)  # noqa: FBT003 - expat's own
    except expat.ExpatError as error:
        raise SourceUnreadable(f"is not XML: {expat.errors.messages[error.code]}", error.lineno) from error
    return top.children[0]


def _import_data(draft: Draft, source: Source, root: _Element) -> None:
    jobs: dict[tuple[str, str], _Element] = {}
    schedules = list(root.each("schedule"))
    for element in root.children:
        if element.name != "schedule":
            draft.note(
                source,
                element.line,
                element.name,
                "",
                Outcome.LOST,
                "belongs to Quartz's store: use `apply` with --prune",
            )
    for schedule in schedules:
        for job in schedule.each("job"):
            jobs[job.first("group"), job.first("name")] = job
    triggers = [each for schedule in schedules for each in schedule.each("trigger")]
    used = set()
    for trigger in triggers:
        for inner in trigger.children:
            key = (inner.first("job-group"), inner.first("job-name"))
            used.add(key)
            _import_trigger(draft, source, inner, jobs.get(key))
    for key, job in jobs.items():
        if key not in used:
            draft.item(source, job.line, key[1]).omit("has no trigger in these files: create its tasks by the API")


def _import_trigger(draft: Draft, source: Source, trigger: _Element, job: _Element | None) -> None:
    name = trigger.first("name") or trigger.first("job-name")
    item = draft.item(source, trigger.line, name)
    timed = {"cron": _cron, "simple": _simple, "calendar-interval": _calendar_interval}.get(trigger.name)
    if timed is None:
        item.omit(f"{trigger.name}: is not a kind of trigger that is known here")
        return
    if not timed(item, trigger):
        return
    for element, key in (("start-time", "start_at"), ("end-time", "end_at")):
        if moment := trigger.first(element):
            item.fields[key] = moment if _has_offset(moment) else f"{moment}Z"
            if not _has_offset(moment):
                item.differs(element, "has no zone: read as UTC; Quartz uses the zone of its machine")
    item.fields["overlap"] = "allow_all"
    item.fields["task"] = _task(item, trigger, job)
    _misfire(item, trigger)
    for each in (trigger, *([job] if job else [])):
        item.comment(each.first("description"), "description")
        if each.first("group") not in {"", "DEFAULT"}:
            item.differs("group", f"names have no groups: {shown(each.first('group'))} is not kept", each.line)
    _unread(item, trigger, _TRIGGER, _KNOWN_TRIGGER)
    draft.add(item)


def _cron(item: Item, trigger: _Element) -> bool:
    item.fields |= {"cron": " ".join(trigger.first("cron-expression").split()), "dialect": "quartz"}
    item.zone(trigger.first("time-zone"), "time-zone", "Quartz uses the zone of its machine")
    return True


def _simple(item: Item, trigger: _Element) -> bool:
    count, interval = _number(trigger.first("repeat-count") or "0"), _number(trigger.first("repeat-interval") or "0")
    if count is None or interval is None:
        item.omit("repeat-count or repeat-interval is not a number", "simple")
        return False
    if count == 0:
        item.omit("runs once: create a task with `due_at`", "repeat-count")
        return False
    if interval < _MILLISECONDS:
        item.omit(f"every {interval} ms: the shortest rate is one second", "repeat-interval")
        return False
    if interval % _MILLISECONDS:
        item.differs("repeat-interval", f"{interval} ms: rates are in whole seconds")
    item.fields["rate"] = rate_of(interval // _MILLISECONDS)
    if count > 0:
        item.fields["remaining_runs"] = count + 1
    return True


def _calendar_interval(item: Item, trigger: _Element) -> bool:
    number, unit = _number(trigger.first("repeat-interval")), trigger.first("repeat-interval-unit") or "DAY"
    if number is None or number < 1 or unit not in _UNITS:
        item.omit("repeat-interval or its unit is not known here", "calendar-interval")
        return False
    item.fields["interval"] = f"P{'T' if unit in _CLOCK else ''}{number}{_UNITS[unit]}"
    item.zone(None, "time-zone", "Quartz uses the zone of its machine" if unit not in _CLOCK else "")
    return True


def _task(item: Item, trigger: _Element, job: _Element | None) -> dict[str, Any]:
    task: dict[str, Any] = {"type": item.draft.options.task_type or type_of(trigger.first("job-name") or item.name)}
    task["retry"] = {"max_attempts": 1}
    item.differs("task", f"the class of the job does not run in duetime: write a handler of type {task['type']}")
    if job is None:
        item.differs("job-name", f"{shown(trigger.first('job-name'))} is not a job of this file")
        data = {}
    else:
        data = _data(job)
        text = "says whether runs may overlap: with @DisallowConcurrentExecution, set `overlap: buffer_one`"
        item.differs("job-class", f"{shown(job.first('job-class'))}: {text}")
        _unread(item, job, _JOB, _KNOWN_JOB)
    if payload := {**data, **_data(trigger)}:
        task["payload"] = payload
    return task


def _data(element: _Element) -> dict[str, str]:
    return {
        entry.first("key"): entry.first("value")
        for each in element.each("job-data-map")
        for entry in each.each("entry")
    }


def _misfire(item: Item, trigger: _Element) -> None:
    instruction = trigger.first("misfire-instruction")
    if instruction.endswith("DO_NOTHING") or "NEXT" in instruction:
        item.fields["catch_up_seconds"] = 0
    elif instruction.endswith("IGNORE_MISFIRE_POLICY"):
        item.fields["catch_up_mode"] = "all"
    elif instruction and not instruction.endswith(("SMART_POLICY", "FIRE_ONCE_NOW", "FIRE_NOW")):
        item.differs("misfire-instruction", f"{shown(instruction)}: the latest missed run is caught up within an hour")


def _unread(item: Item, element: _Element, read: frozenset[str], known: dict[str, str]) -> None:
    for each in element.children:
        if each.name not in read:
            item.lost(each.name, f"{shown(each.text.strip())}: {known.get(each.name, 'has no equivalent')}", each.line)


def _import_properties(draft: Draft, source: Source) -> None:
    """Import properties whose value is a cron expression, such as `jobs.report.cron`; report all other properties."""
    found = False
    for line, key, value in _properties(source.text):
        if key.startswith("org.quartz."):
            found = True
            text = next(text for prefix, text in _SETTINGS.items() if key.startswith(prefix))
            draft.note(source, line, "settings", key, Outcome.LOST, f"{shown_setting(key, value)}: {text}")
        elif _is_cron(value):
            found = True
            item = draft.item(source, line, key)
            item.fields |= {"cron": " ".join(value.split()), "dialect": "quartz", "overlap": "allow_all"}
            item.zone(None, key, "Quartz uses the zone of its machine")
            item.fields["task"] = {"type": item.placeholder("the job does not run in duetime")}
            item.fields["task"]["retry"] = {"max_attempts": 1}
            draft.add(item)
        else:
            draft.note(
                source,
                line,
                "settings",
                key,
                Outcome.LOST,
                f"{shown_setting(key, value)}: is not a Quartz cron expression",
            )
    if not found:
        draft.unreadable(source, "has no Quartz cron expression and no Quartz settings")


def _properties(text: str) -> Iterator[tuple[int, str, str]]:
    """The properties with their line numbers; a line that ends with a backslash continues on the next line."""
    pending, first = "", 0
    for number, line in enumerate(text.split("\n"), 1):
        content = line.strip()
        if not pending and (not content or content[0] in "#!"):
            continue
        first = first if pending else number
        pending += content
        if pending.endswith("\\"):
            pending = pending[:-1]
            continue
        if match := _PROPERTY.fullmatch(pending):
            yield first, match["key"].replace("\\", ""), match["value"] or ""
        pending = ""


def _is_cron(value: str) -> bool:
    words = value.split()
    return _CRON.fullmatch(value.strip()) is not None and "?" in words and all(map(_CRON_WORD.fullmatch, words))


def _number(text: str) -> int | None:
    try:
        return int(text)
    except ValueError:
        return None


def _has_offset(moment: str) -> bool:
    return moment.endswith("Z") or re.search(r"[+-]\d\d:\d\d$", moment) is not None
