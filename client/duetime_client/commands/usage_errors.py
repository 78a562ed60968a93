"""Error messages for bad options, in plain words."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # Typer has no public name for this error.
    from typer._click.exceptions import NoSuchOption

_PLAIN = (
    (re.compile(r"^Value error, "), ""),
    (re.compile(r"^Input should be a valid integer\b.*"), "should be a whole number"),
    (re.compile(r"^Input should be a valid number\b.*"), "should be a number"),
    (re.compile(r"^Input should "), "should "),
)
_OPTIONS = {"delay_seconds": "in"}
"""Options whose names differ from their fields."""
_CHOICE = re.compile(r"^'([^']*)' is not one of (.*)\.$")


def plain(message: str) -> str:
    """The message of a bad option in plain words, because typer quotes pydantic's errors."""
    for pattern, words in _PLAIN:
        message = pattern.sub(words, message)
    return message + meant(message)


def meant(message: str) -> str:
    """A suggestion for a value that is not among the allowed values in a message."""
    found = _CHOICE.match(message)
    if found is None:
        return ""
    matches = get_close_matches(found[1], re.findall("'([^']*)'", found[2]), n=1)
    return f" Did you mean {matches[0]!r}?" if matches else ""


def suggesting(error: NoSuchOption) -> str:
    """The message for an unknown option; suggests a similar name, or the option that has this name elsewhere."""
    found = sorted(_of_other_systems(error) or error.possibilities or ())
    return f"{error.message}." + (f" Did you mean {' or '.join(found)}?" if found else "")


def _of_other_systems(error: NoSuchOption) -> set[str]:
    """Options of a command by their names in other systems, such as `--expires` for `--ttl`."""
    from duetime_common.foreign_names import meanings_of, plain_name  # noqa: PLC0415 - only who errs waits for it

    known = {option for each in (error.ctx.command.params if error.ctx else ()) for option in each.opts}
    for meaning in meanings_of(plain_name(error.option_name.lstrip("-"))):
        for field in meaning.fields:
            name = field.rpartition(".")[2].removesuffix("_seconds").replace("_", "-")
            found = known & {f"--{name}", f"--{_OPTIONS.get(field, name)}"}
            if found:
                return found
    return set()
