"""The streams that commands print to, and what may safely be printed."""

from __future__ import annotations

import json
import sys
from io import TextIOWrapper

import typer
from rich.console import Console
from rich.text import Text

# Where nobody reads along (a file, a pipe) nothing need be cut to a screen's width.
PAPER_WIDTH = 200


def console(*, stderr: bool = False) -> Console:
    """A console of the stream as it is now; a pipe gets lines long enough to cut nothing."""
    stream = sys.stderr if stderr else sys.stdout
    if isinstance(stream, TextIOWrapper):
        # A terminal that lacks a letter gets its escape instead of a failed command.
        stream.reconfigure(errors="backslashreplace")
    made = Console(stderr=stderr, highlight=False)
    return made if made.is_terminal else Console(stderr=stderr, highlight=False, width=PAPER_WIDTH)


def show_json(document: object) -> None:
    """Print one JSON document."""
    text = json.dumps(document, indent=2, ensure_ascii=False)
    try:
        text.encode(sys.stdout.encoding)
    except UnicodeEncodeError:
        # A terminal of another encoding, or half a surrogate pair: the same document in escapes.
        text = json.dumps(document, indent=2)
    typer.echo(text)


def printable(text: str, style: str = "") -> Text:
    """Text that may come from anyone, without the control characters that would steer a terminal."""
    safe = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in text)
    return Text(safe, style=style)
