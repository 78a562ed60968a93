"""Imports a crontab: each line becomes a schedule whose task has the command as its payload.

Source: crontab(5) and cron(8) of Vixie cron and cronie: environment lines, `CRON_TZ`, nicknames such as `@daily`, `%`,
    the user column of /etc/crontab, a `-` before a line, `low~high` for a random value; a time that is skipped when
    clocks are set forward runs immediately, and a time that is repeated when clocks are set back runs once; runs can
    overlap.
"""

from __future__ import annotations

import hashlib
import re
from typing import TYPE_CHECKING, Any

from duetime_client.manifests.reader import Entry

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_VARIABLE = re.compile(r"""\s*(?P<name>[A-Za-z_]\w*|"[^"]+"|'[^']+')\s*=\s*(?P<value>.*)""")
_NICKNAME = re.compile(r"@\w+")
_ZONES = frozenset({"CRON_TZ"})
_PERCENT = re.compile(r"(?<!\\)%")
_UNSAFE = re.compile(r"[^A-Za-z0-9_.:-]+")
_RANDOM = re.compile(r"(?P<low>\d*)~(?P<high>\d*)")
_RANGES = ((0, 59), (0, 23), (1, 31), (1, 12), (0, 6))
"""The smallest and largest value of each field of an expression."""
_FIELDS = 5
_LONGEST_NAME = 48
_HASH_DIGITS = 6


def entries_of_crontab(text: str, *, task_type: str, timezone: str | None, has_users: bool = False) -> list[Entry]:
    """Convert the lines of a crontab to schedules.

    Args:
        text: The crontab.
        task_type: The type of the tasks; the type's handler runs the commands.
        timezone: The time zone of the crontab's machine; a `CRON_TZ` line takes precedence.
        has_users: Whether a user precedes the command, as in /etc/crontab.
    """
    return list(_entries(text, task_type, timezone, has_users=has_users))


def _entries(text: str, task_type: str, timezone: str | None, *, has_users: bool) -> Iterator[Entry]:
    env: dict[str, str] = {}
    zone = timezone
    times: dict[str, int] = {}
    # Only a line feed ends a line, as in cron; a form feed or U+2028 is part of the command.
    for number, line in enumerate(text.split("\n"), 1):
        content = line.strip()
        if not content or content.startswith("#"):
            continue
        if variable := _VARIABLE.fullmatch(content):
            name, value = variable["name"].strip("\"'"), _unquoted(variable["value"])
            if name in _ZONES:
                zone = value or timezone
            else:
                env[name] = value
            continue
        try:
            cron, user, command = _parts(content, has_users=has_users)
        except ValueError as error:
            yield Entry(number, content[:_LONGEST_NAME], fault=str(error))
            continue
        base = _name(user, command)
        times[base] = times.get(base, 0) + 1
        name = base if times[base] == 1 else f"{base}-{times[base]}"
        yield Entry(number, name, _fields(cron, zone, {"type": task_type, "payload": _payload(command, env, user)}))


def _parts(line: str, *, has_users: bool) -> tuple[str, str, str]:
    """Split a line into expression, user and command.

    Raises:
        ValueError: The line is not supported; the message says why.
    """
    # A leading dash only tells cronie and similar programs not to log the line.
    line = line.removeprefix("-")
    nickname = _NICKNAME.match(line)
    count = 1 if nickname else _FIELDS
    if nickname and nickname[0].lower() == "@reboot":
        raise ValueError("@reboot: has no equivalent for schedules")
    words = line.split(None, count + has_users)
    if len(words) <= count + has_users:
        raise ValueError(
            f"should have {count} {'word' if count == 1 else 'fields'} of time, "
            f"{'a user ' if has_users else ''}and a command"
        )
    expression = words[0] if nickname else " ".join(_chosen(words[:count], line))
    return expression, words[count] if has_users else "", words[-1]


def _chosen(fields: list[str], line: str) -> Iterator[str]:
    """Replace each `low~high` by a value derived from the line; cron draws a new value whenever it loads the file.

    Raises:
        ValueError: The range is empty, or exceeds the field's range.
    """
    for number, (field, (least, greatest)) in enumerate(zip(fields, _RANGES, strict=True)):
        found = _RANDOM.fullmatch(field)
        if found is None:
            yield field
            continue
        low, high = int(found["low"] or least), int(found["high"] or greatest)
        if not least <= low <= high <= greatest:
            raise ValueError(f"{field}: should be a range within {least}~{greatest}")
        drawn = int(hashlib.sha256(f"{number}\n{line}".encode()).hexdigest(), 16)
        yield str(low + drawn % (high - low + 1))


def _payload(command: str, env: Mapping[str, str], user: str) -> dict[str, Any]:
    """The payload: the first `%` ends the command, and each later `%` is a line end in the command's standard input."""
    line, *rest = _PERCENT.split(command, maxsplit=1)
    payload: dict[str, Any] = {"command": line.replace("\\%", "%").strip()}
    if rest:
        given = _PERCENT.sub("\n", rest[0]).replace("\\%", "%")
        # Every cron ends the input with a line end; otherwise `while read` would skip the last line.
        payload["stdin"] = given if given.endswith("\n") else f"{given}\n"
    if env:
        payload["env"] = dict(env)
    return {**payload, "user": user} if user else payload


def _fields(cron: str, zone: str | None, task: Mapping[str, Any]) -> dict[str, Any]:
    zoned = {"timezone": zone} if zone else {}
    return {"cron": cron, "dialect": "vixie", **zoned, "dst_gap": "shift_forward", "overlap": "allow_all", "task": task}


def _name(user: str, command: str) -> str:
    """A name that stays the same if the line moves or its timing changes."""
    words = command.split()
    program = _UNSAFE.sub("-", words[0].rpartition("/")[2]).strip("-.:")[:_LONGEST_NAME] or "command"
    digest = hashlib.sha256(f"{user}\n{command}".encode()).hexdigest()[:_HASH_DIGITS]
    return f"{program}-{digest}"


def _unquoted(value: str) -> str:
    is_quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
    return value[1:-1] if is_quoted else value
