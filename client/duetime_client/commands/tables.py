"""Prints tables, in which a function computes each column's cells, and detail views, which consist of lines."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

from rich.table import Table

from duetime_client.commands.output_streams import console, printable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from rich.text import Text

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Column(Generic[T]):
    """A column of a table.

    Attributes:
        heading: the text above the column.
        cell: makes the cell of an entry; strings are untrusted text.
        right: whether the column is aligned to the right, as numbers are.
        wraps: whether lines may break between words; columns that wrap shrink first on a narrow screen.
        folds: whether lines may break anywhere, so that nothing is cut.
    """

    heading: str | Text
    cell: Callable[[T], str | Text]
    right: bool = False
    wraps: bool = False
    folds: bool = False


def table_of(entries: Iterable[T], columns: Sequence[Column[T]]) -> Table:
    """A table with a row for each entry."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for column in columns:
        table.add_column(
            column.heading,
            justify="right" if column.right else "left",
            no_wrap=not (column.wraps or column.folds),
            overflow="fold" if column.folds else "ellipsis",
        )
    for each in entries:
        table.add_row(*(_text(column.cell(each)) for column in columns))
    return table


def show_table(entries: Iterable[T], columns: Sequence[Column[T]], nothing: str) -> None:
    """Print a table, or the given sentence if there are no entries."""
    table = table_of(entries, columns)
    console().print(table) if table.row_count else console().print(nothing, style="dim")


def show_more(shown: Sequence[object]) -> None:
    """Print a notice that the list has more entries than the table shows, with the options that show the rest."""
    console().print(f"{len(shown)} shown, there are more: --limit N or --all", style="dim")


def show_lines(lines: Iterable[tuple[str, str | Text | None]]) -> None:
    """Print a detail view: a line for each label and value; labels without a value are left out."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for label, value in lines:
        if value is not None:
            grid.add_row(label, _text(value))
    console().print(grid)


def one_line(text: str) -> Text:
    """Text that is cut rather than wrapped."""
    line = printable(text)
    line.no_wrap, line.overflow = True, "ellipsis"
    return line


def _text(cell: str | Text) -> Text:
    return printable(cell) if isinstance(cell, str) else cell
