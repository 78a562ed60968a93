"""Provides the streams of commands, and prints to the streams safely."""

from __future__ import annotations

import json
import sys
from io import TextIOWrapper

import typer
from rich.console import Console
from rich.text import Text

from duetime_client.commands.document_output import shown_document
from duetime_common.payload_codecs import hidden_text

# Width for output to a file or a pipe, wide enough that nothing is cut.
PAPER_WIDTH = 200


def console(*, stderr: bool = False) -> Console:
    """A console for the current stream; output to a pipe is not cut."""
    stream = sys.stderr if stderr else sys.stdout
    if isinstance(stream, TextIOWrapper):
        # Characters that the terminal cannot show are escaped instead of failing the command.
        stream.reconfigure(errors="backslashreplace")
    made = Console(stderr=stderr, highlight=False)
    return made if made.is_terminal else Console(stderr=stderr, highlight=False, width=PAPER_WIDTH)


def say(sentence: str) -> None:
    """Print the result of a command on one line."""
    console().print(printable(sentence), soft_wrap=True)


def show_json(document: object, *, of_many: bool = False) -> None:
    """Print a document in the chosen format, by default JSON; in a stream, a JSON document is one line."""
    text = shown_document(document, of_many=of_many)
    try:
        text.encode(sys.stdout.encoding)
    except UnicodeEncodeError:
        # The terminal's encoding lacks a character, or the text has a lone surrogate.
        text = "".join(char if char.isascii() else _escaped(char) for char in text)
    typer.echo(text)


def _escaped(char: str) -> str:
    """A character as JSON's escape sequence."""
    return json.dumps(char)[1:-1]


def printable(text: str, style: str = "") -> Text:
    """Escape terminal control characters in untrusted text, and hide encrypted strings."""
    shown = hidden_text(text)
    safe = "".join(char if char.isprintable() else char.encode("unicode_escape").decode() for char in shown)
    return Text(safe, style=style)
