"""The streams that commands print to, and how to print to them safely."""

from __future__ import annotations

import json
import sys
from io import TextIOWrapper

import typer
from rich.console import Console
from rich.text import Text

from duetime_client.commands.document_output import shown_document

# Output to a file or a pipe is not cut to the width of a screen.
PAPER_WIDTH = 200


def console(*, stderr: bool = False) -> Console:
    """A console of the stream as it is now; a pipe gets lines long enough to cut nothing."""
    stream = sys.stderr if stderr else sys.stdout
    if isinstance(stream, TextIOWrapper):
        # A terminal that cannot show a character gets its escape sequence instead of a failed command.
        stream.reconfigure(errors="backslashreplace")
    made = Console(stderr=stderr, highlight=False)
    return made if made.is_terminal else Console(stderr=stderr, highlight=False, width=PAPER_WIDTH)


def say(sentence: str) -> None:
    """Print what a command did, on one line."""
    console().print(printable(sentence), soft_wrap=True)


def show_json(document: object, *, of_many: bool = False) -> None:
    """Print a document in the format that the command's options name, by default JSON; one of many, on one line."""
    text = shown_document(document, of_many=of_many)
    try:
        text.encode(sys.stdout.encoding)
    except UnicodeEncodeError:
        # A terminal of another encoding, or half a surrogate pair.
        text = "".join(char if char.isascii() else _escaped(char) for char in text)
    typer.echo(text)


def _escaped(char: str) -> str:
    """A character as JSON escapes it."""
    return json.dumps(char)[1:-1]


def printable(text: str, style: str = "") -> Text:
    """Text that may come from anyone, without the control characters that a terminal would obey."""
    safe = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
    return Text(safe, style=style)
