"""The result of an import: schedules for a manifest, and a finding for everything that differs or is left out."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any

from duetime_client.manifests.reader import entries_of, with_defaults

if TYPE_CHECKING:
    from collections.abc import Mapping

LONGEST_TIMEOUT = 840
"""The longest timeout for a handler's attempt, in seconds."""
LONGEST_WAIT = 86_400
"""The longest wait between two attempts, in seconds."""
LONGEST_PERIOD = 2_592_000
"""The longest catch-up, expiry and duration of retries, in seconds."""
MOST_ATTEMPTS = 100
_LONGEST_NAME = 100
_LONGEST_TYPE = 64
_UNSAFE_NAME = re.compile(r"[^A-Za-z0-9_.:-]+")
_UNSAFE_TYPE = re.compile(r"[^A-Za-z0-9_.:/-]+")
_UNSAFE_TAG = re.compile(r"[^A-Za-z0-9_./-]+")
_SECRET = re.compile(r"password|passwd|secret|token|url|key|backend|credential|broker", re.IGNORECASE)
_LEADING = ".:/-"
_LONGEST_TAG_KEY = 32
_LONGEST_TAG_VALUE = 64
_MOST_TAGS = 10
_LONGEST_PAYLOAD = 1_048_576
_LONGEST_TEXT = 200


class Outcome(StrEnum):
    """The outcome of the import for a part of a file."""

    DIFFERS = "differs"
    LOST = "not carried over"
    OMITTED = "not imported"


@dataclass(frozen=True, slots=True)
class Finding:
    """Something in a file that has no exact equivalent.

    Attributes:
        file: The file.
        line: The line number, counted from 1; 0 if unknown.
        entry: The schedule, job or setting.
        field: The part of the entry.
        outcome: Whether the part differs, is lost, or is not imported.
        text: The reason, and what to do.
    """

    file: str
    line: int
    entry: str
    field: str
    outcome: Outcome
    text: str


@dataclass(frozen=True, slots=True)
class Source:
    """A file to import: its name and its text."""

    name: str
    text: str


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """The user's options for all entries.

    Attributes:
        task_type: The type for imported tasks; if empty, each type is derived from the entry's name.
        timezone: The time zone for files that do not name a time zone.
        prefix: The prefix for all names.
        with_suspended: Whether suspended entries are imported, too.
    """

    task_type: str = ""
    timezone: str = ""
    prefix: str = ""
    with_suspended: bool = False


@dataclass(slots=True)
class Draft:
    """The schedules and findings that the import has produced so far."""

    options: ImportOptions = field(default_factory=ImportOptions)
    schedules: dict[str, dict[str, Any]] = field(default_factory=dict)
    findings: list[Finding] = field(default_factory=list)
    _items: dict[str, Item] = field(default_factory=dict)

    def note(self, source: Source, line: int, entry: str, part: str, outcome: Outcome, text: str) -> None:
        """Add a finding."""
        self.findings.append(Finding(source.name, line, entry, part, outcome, text))

    def unreadable(self, source: Source, text: str, line: int = 0) -> None:
        """Report a file that cannot be parsed in its expected format."""
        self.note(source, line, "", "", Outcome.OMITTED, text)

    def item(self, source: Source, line: int, name: str) -> Item:
        """An entry of a file that may become a schedule."""
        return Item(self, source, line, name)

    def add(self, item: Item) -> None:
        """Keep a schedule under a valid name that is not taken yet."""
        wanted = _safe(f"{self.options.prefix}{item.name}", _UNSAFE_NAME, _LONGEST_NAME)
        name, number = wanted, 1
        while name in self.schedules:
            number += 1
            name = f"{wanted}-{number}"
        if name != f"{self.options.prefix}{item.name}":
            item.differs("name", f"is named {name}")
        self.schedules[name] = item.fields
        self._items[name] = item

    def manifest(self) -> str:
        """The schedules as JSON lines; schedules that `duetime schedules apply` would reject are reported instead."""
        lines = [json.dumps({"name": name, **fields}, ensure_ascii=False) for name, fields in self.schedules.items()]
        kept = []
        for line, entry in zip(lines, entries_of("\n".join(lines)), strict=True):
            checked = with_defaults(entry)
            if checked.fault:
                self._items[entry.name].omit(checked.fault)
            else:
                kept.append(f"{line}\n")
        return "".join(kept)


@dataclass(slots=True)
class Item:
    """One entry of a file, with the fields of its schedule and methods to report findings about the entry."""

    draft: Draft
    source: Source
    line: int
    name: str
    fields: dict[str, Any] = field(default_factory=dict)

    def differs(self, part: str, text: str, line: int = 0) -> None:
        """Report a part that is carried over with a different meaning."""
        self.draft.note(self.source, line or self.line, self.name, part, Outcome.DIFFERS, text)

    def lost(self, part: str, text: str, line: int = 0) -> None:
        """Report a part that is not carried over."""
        self.draft.note(self.source, line or self.line, self.name, part, Outcome.LOST, text)

    def omit(self, text: str, part: str = "") -> None:
        """Report that the entry is not imported."""
        self.draft.note(self.source, self.line, self.name, part, Outcome.OMITTED, text)

    def omit_suspended(self, part: str) -> bool:
        """Report a suspended entry, and return whether it is left out."""
        if self.draft.options.with_suspended:
            self.differs(part, f"is switched off: pause it after `apply` with `duetime schedules pause {self.name}`")
            return False
        self.omit("is switched off; --with-suspended imports it", part)
        return True

    def zone(self, zone: object, part: str, otherwise: str) -> None:
        """Set the time zone from the file or else the options; report a finding if neither names a time zone.

        Args:
            zone: The time zone in the file, if the file names a time zone.
            part: The field for the time zone in the file.
            otherwise: What the scheduler does if no time zone is named, as text; empty if it uses UTC.
        """
        name = zone if isinstance(zone, str) and zone else self.draft.options.timezone
        if name:
            self.fields["timezone"] = name
        elif otherwise:
            self.differs(part, f"is not given; {otherwise}: read as UTC, --timezone sets another zone")

    def placeholder(self, program: str) -> str:
        """Return the type for a task whose work cannot be imported, and report that the type needs a handler."""
        kind = self.draft.options.task_type or type_of(self.name)
        self.differs("task", f"{program}: write a handler of type {kind}")
        return kind

    def attempts(self, retries: object, part: str) -> int | None:
        """The number of attempts for a number of retries; `None` if `retries` is not a valid number."""
        if not isinstance(retries, int) or isinstance(retries, bool) or retries < 0:
            self.lost(part, f"{shown(retries)} is not a number of retries")
            return None
        if retries + 1 > MOST_ATTEMPTS:
            self.differs(part, f"{retries} retries: at most {MOST_ATTEMPTS} attempts are made")
        return min(retries + 1, MOST_ATTEMPTS)

    def timeout(self, seconds: float, part: str) -> dict[str, int]:
        """Convert a time limit to task fields; work that exceeds the longest attempt must report its outcome later."""
        whole = max(1, int(seconds))
        if whole <= LONGEST_TIMEOUT:
            return {"timeout_seconds": whole}
        self.differs(
            part,
            f"{whole} s: a handler runs for up to {LONGEST_TIMEOUT} s; defer the outcome, or use a pull worker",
        )
        return {"timeout_seconds": LONGEST_TIMEOUT, "notify_within_seconds": min(whole, LONGEST_PERIOD)}

    def unread(self, given: Mapping[str, object], read: frozenset[str], path: str, known: Mapping[str, str]) -> None:
        """Report each field that is not read, with the reason from `known` if there is one."""
        lines = getattr(given, "lines", {})
        for key in given:
            if key not in read:
                reason = known.get(key, f"has no equivalent; it was {shown(given[key])}")
                self.lost(f"{path}{key}", reason, lines.get(key, 0))

    def comment(self, text: object, part: str) -> None:
        """Report a description, because schedules do not have descriptions."""
        if text:
            self.lost(part, f"{shown(text)}: write it as a comment in the file")

    def tags(self, given: Mapping[str, object], part: str) -> dict[str, str]:
        """Convert labels to tags of the task, up to a task's maximum number of tags."""
        found: dict[str, str] = {}
        for key, value in given.items():
            name, text = _safe(key, _UNSAFE_TAG, _LONGEST_TAG_KEY), str(value)[:_LONGEST_TAG_VALUE]
            if len(found) == _MOST_TAGS or not text.isprintable() or not text:
                self.lost(f"{part}.{key}", f"a task has at most {_MOST_TAGS} tags of printable text")
                continue
            if (name, text) != (key, str(value)):
                self.differs(f"{part}.{key}", f"is the tag {name}: {text}")
            found[name] = text
        return found

    def payload(self, value: object, part: str) -> Any:  # noqa: ANN401 - any JSON
        """Return the value as a payload; a value that is not JSON or too large is reported, and `None` is returned."""
        try:
            text = json.dumps(value, allow_nan=False)
        except (TypeError, ValueError, RecursionError):
            self.lost(part, f"{shown(value)} is not JSON, or not known before the program runs")
            return None
        if len(text) > _LONGEST_PAYLOAD:
            self.lost(part, f"has {len(text)} bytes; a payload has at most {_LONGEST_PAYLOAD}")
            return None
        return value


def type_of(text: str) -> str:
    """Derive a valid task type from a string."""
    return _safe(text, _UNSAFE_TYPE, _LONGEST_TYPE)


def shown(value: object) -> str:
    """Format a value for a message, and cut it if it is long."""
    text = value if isinstance(value, str) else repr(value)
    text = " ".join(text[: 4 * _LONGEST_TEXT].split())
    return text if len(text) <= _LONGEST_TEXT else f"{text[: _LONGEST_TEXT - 1]}…"


def shown_setting(name: str, value: object) -> str:
    """Format a setting for a report; values that may be secret, such as URLs with passwords, are not shown."""
    return f"{name} is set" if _SECRET.search(name) else shown(value)


def rate_of(seconds: int) -> str:
    """Convert a period to the rate of a schedule, in the largest unit that divides the period."""
    for unit, size in (("day", 86_400), ("hour", 3_600), ("minute", 60)):
        if seconds % size == 0:
            return f"{seconds // size} {unit}{'' if seconds == size else 's'}"
    return f"{seconds} second{'' if seconds == 1 else 's'}"


def _safe(text: str, unsafe: re.Pattern[str], longest: int) -> str:
    return unsafe.sub("-", text).lstrip(_LEADING).rstrip("-")[:longest] or "unnamed"
