"""Format and selection of documents on standard output (`--json`, `--output`, `--query`)."""

from __future__ import annotations

import json
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from collections.abc import Iterator

PANEL = "Output"


class OutputFormat(StrEnum):
    """How a command prints its result."""

    TABLE = "table"
    JSON = "json"
    JSONL = "jsonl"
    YAML = "yaml"
    TEXT = "text"


AsJson = Annotated[
    bool, typer.Option("--json", help="Print JSON instead of a table: the same as -o json.", rich_help_panel=PANEL)
]
"""A `--json` parameter that also adds `--output` and `--query` to its command."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputOptions:
    """The options of commands that print a document."""

    as_json: AsJson = False
    output: Annotated[
        OutputFormat | None,
        typer.Option(
            "-o",
            "--output",
            help="Default: table. jsonl: one entry per line. text: values without quotes, separated by tabs.",
            rich_help_panel=PANEL,
        ),
    ] = None
    query: Annotated[
        str | None,
        typer.Option(
            "--query",
            metavar="EXPR",
            help="Print the part of the document that this JMESPath selects.",
            rich_help_panel=PANEL,
        ),
    ] = None

    @property
    def printing(self) -> Printing | None:
        """The chosen output format; `None` for a table.

        Raises:
            typer.BadParameter: The options conflict, or the query is not valid.
        """
        if self.as_json and self.output not in {None, OutputFormat.JSON}:
            raise typer.BadParameter("give either --json or --output, not both", param_hint="--json")
        if self.query is not None and self.output is OutputFormat.TABLE:
            raise typer.BadParameter("needs a format other than table", param_hint="--query")
        query = None if self.query is None else Query.of(self.query)
        if self.output is OutputFormat.TABLE or not (self.as_json or self.output or query):
            return None
        return Printing(self.output or OutputFormat.JSON, query)


@dataclass(frozen=True, slots=True)
class Query:
    """A JMESPath expression."""

    compiled: Any

    @classmethod
    def of(cls, expression: str) -> Query:
        """Parse the query given as an option.

        Raises:
            typer.BadParameter: The query is not a JMESPath expression.
        """
        import jmespath  # noqa: PLC0415 - most commands do not need it

        try:
            return cls(jmespath.compile(expression))
        except jmespath.exceptions.JMESPathError as error:
            raise typer.BadParameter(f"not a JMESPath expression: {error}", param_hint="--query") from error

    def of_document(self, document: object) -> object:
        """Select the matching part of a document; `None` if nothing matches.

        Raises:
            typer.BadParameter: A function of the expression does not accept these values.
        """
        import jmespath  # noqa: PLC0415 - as above

        try:
            return self.compiled.search(document)
        except jmespath.exceptions.JMESPathError as error:
            raise typer.BadParameter(str(error), param_hint="--query") from error


@dataclass(frozen=True, slots=True)
class Printing:
    """How a command prints its documents."""

    form: OutputFormat = OutputFormat.JSON
    query: Query | None = None

    def text(self, document: object, *, of_many: bool = False) -> str:
        """Format a document; in a stream, a JSON document is one line, which can be read immediately."""
        part = document if self.query is None else self.query.of_document(document)
        match self.form:
            case OutputFormat.YAML:
                return ("---\n" if of_many else "") + as_yaml(part)
            case OutputFormat.TEXT:
                return as_text(part)
            case OutputFormat.JSONL:
                entries = part if isinstance(part, list) else [part]
                return "\n".join(json.dumps(entry, ensure_ascii=False) for entry in entries)
        return json.dumps(part, indent=None if of_many else 2, ensure_ascii=False)


def as_yaml(document: object) -> str:
    """YAML with the fields in the order of the API."""
    import yaml  # noqa: PLC0415 - most commands do not need it

    text: str = yaml.safe_dump(document, sort_keys=False, allow_unicode=True, width=120)
    # PyYAML adds an end-of-document marker after a bare value.
    return text.removesuffix("\n").removesuffix("\n...")


def as_text(document: object) -> str:
    """Format values without quotes: one line for each list entry, with its values separated by tabs."""
    entries = document if isinstance(document, list) else [document]
    return "\n".join("\t".join(map(_cell, _values(entry))) for entry in entries)


def _values(entry: object) -> list[object]:
    if isinstance(entry, dict):
        return list(entry.values())
    return entry if isinstance(entry, list) else [entry]


def _cell(value: object) -> str:
    if isinstance(value, str):
        # A tab or line end inside a value would split the value.
        return value.replace("\t", " ").replace("\n", " ")
    return "" if value is None else json.dumps(value, ensure_ascii=False)


_PRINTING: ContextVar[Printing | None] = ContextVar("printing", default=None)


@contextmanager
def printing(how: Printing | None) -> Iterator[None]:
    """Print documents in this format while the context manager is active."""
    token = _PRINTING.set(how)
    try:
        yield
    finally:
        _PRINTING.reset(token)


def shown_document(document: object, *, of_many: bool = False) -> str:
    """A document in the format that the options of the command name."""
    return (_PRINTING.get() or Printing()).text(document, of_many=of_many)
