"""Queries the archive of ended tasks with DuckDB, which the extra `archive` installs."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from duetime_client.archive_columns import COLUMNS, INSTANT, JSON, SHOWN
from duetime_client.archive_objects import SUFFIX, days_between
from duetime_client.errors import ClientError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from datetime import date

    from duckdb import DuckDBPyConnection

    from duetime_client.archive_objects import ArchivedObject, ArchiveObjects

MOST_DAYS = 400
MOST_BYTES = 2_000_000_000
"""Maximum size in bytes of the compressed objects that one query downloads and reads."""
_AT_ONCE = 8


class ArchiveQueryInvalid(ClientError, ValueError):
    """The query cannot be run: the condition is not valid SQL, a column is unknown, or the range has too many days."""


@dataclass(frozen=True, slots=True)
class ArchiveQuery:
    """A query for archived tasks.

    Attributes:
        first: the first UTC day of the period in which the tasks ended.
        last: the last UTC day of the period in which the tasks ended.
        where: a condition in DuckDB's SQL over `archive_columns.COLUMNS`.
        columns: the columns to return.
        limit: the maximum number of tasks; the most recently ended tasks come first.
    """

    first: date
    last: date
    where: str = "true"
    columns: Sequence[str] = SHOWN
    limit: int = 100

    def __post_init__(self) -> None:
        """Validate the columns and the range of days."""
        days = (self.last - self.first).days + 1
        if not 1 <= days <= MOST_DAYS:
            raise ArchiveQueryInvalid(f"from {self.first} to {self.last} are {days} days; 1 to {MOST_DAYS} are allowed")
        if unknown := [name for name in self.columns if name not in COLUMNS]:
            raise ArchiveQueryInvalid(f"no such columns: {', '.join(unknown)}; known columns: {', '.join(COLUMNS)}")

    @property
    def sql(self) -> str:
        """The SQL of the query. A task that is archived twice appears once in the result."""
        names = ", ".join(f'"{name}"' for name in self.columns)
        # The condition is on its own line, because it can end with a comment.
        found = f"SELECT DISTINCT ON (id, version) * FROM tasks WHERE (\n{self.where}\n)"  # noqa: S608 - SQL by design
        return f"SELECT {names} FROM ({found}) ORDER BY finished_at DESC, id LIMIT {self.limit:d}"  # noqa: S608 - same


class Archive:
    """Queries the archive of ended tasks.

    Args:
        objects: the source of the archive's objects.
    """

    def __init__(self, objects: ArchiveObjects) -> None:
        self._objects = objects

    def query(self, query: ArchiveQuery, progress: Callable[[int, int], None]) -> list[dict[str, Any]]:
        """Run a query; times are returned as text in the API's format, and JSON values are parsed.

        Args:
            query: the query to run.
            progress: called with the bytes downloaded so far and in total.

        Raises:
            ArchiveQueryInvalid: the condition is not valid SQL, or the archive contains too much data for these days.
        """
        with TemporaryDirectory(prefix="duetime-archive-") as folder:
            files = self._download(query, Path(folder), progress)
            return run(query, files, Path(folder))

    def _download(self, query: ArchiveQuery, folder: Path, progress: Callable[[int, int], None]) -> list[Path]:
        with ThreadPoolExecutor(_AT_ONCE) as threads:
            days = threads.map(lambda day: list(self._objects.of_day(day)), days_between(query.first, query.last))
            wanted = [each for objects in days for each in objects]
            size = sum(each.size for each in wanted)
            if size > MOST_BYTES:
                raise ArchiveQueryInvalid(
                    f"the objects of these days have {size / 1e9:.1f} GB, and {MOST_BYTES / 1e9:.0f} GB are allowed:"
                    " choose fewer days, or use Athena"
                )

            def download(numbered: tuple[int, ArchivedObject]) -> tuple[Path, int]:
                number, each = numbered
                path = folder / f"{number:06}{SUFFIX}"
                return path, path.write_bytes(self._objects.read(each.key))

            files, done = [], 0
            for path, written in threads.map(download, enumerate(wanted)):
                files.append(path)
                done += written
                progress(done, size)
        return files


def run(query: ArchiveQuery, files: Sequence[Path], folder: Path) -> list[dict[str, Any]]:
    """Run a query over archive files in a folder.

    Raises:
        ArchiveQueryInvalid: the condition is not valid SQL, or tries to read anything other than these files.
    """
    # DuckDB is an optional extra, and takes longer to import than all other modules.
    import duckdb  # noqa: PLC0415 - see the line above

    connection = duckdb.connect(
        ":memory:", config={"autoinstall_known_extensions": False, "autoload_known_extensions": False}
    )
    with connection:
        try:
            _open(connection, files, folder)
            if len(connection.extract_statements(query.sql)) != 1:
                raise ArchiveQueryInvalid("a condition is one expression, not several statements")
            rows = connection.execute(query.sql).fetchall()
        except duckdb.Error as error:
            raise ArchiveQueryInvalid(f"DuckDB rejects the query: {error}") from error
    return [_shown(dict(zip(query.columns, row, strict=True))) for row in rows]


def _open(connection: DuckDBPyConnection, files: Sequence[Path], folder: Path) -> None:
    """Create a view of the files, and block all other reads and writes."""
    columns = ", ".join(f'"{name}" {kind}' for name, kind in COLUMNS.items())
    connection.execute(f"SET allowed_directories = [{_quoted(str(folder))}]")
    connection.execute("SET enable_external_access = false")
    connection.execute("SET lock_configuration = true")
    if not files:
        connection.execute(f"CREATE TABLE tasks ({columns})")
        return
    names = ", ".join(_quoted(str(path)) for path in files)
    types = ", ".join(f"{_quoted(name)}: {_quoted(kind)}" for name, kind in COLUMNS.items())
    connection.execute(
        f"CREATE VIEW tasks AS SELECT * FROM read_json([{names}], format = 'newline_delimited',"  # noqa: S608 - quoted
        f" compression = 'gzip', columns = {{{types}}})"
    )


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def _shown(row: dict[str, Any]) -> dict[str, Any]:
    return {name: _value(COLUMNS[name], value) for name, value in row.items()}


def _value(kind: str, value: Any) -> Any:  # noqa: ANN401 - a value of a database
    if value is None:
        return None
    if kind == INSTANT:
        return f"{value.isoformat(timespec='milliseconds')}Z"
    return json.loads(value) if kind == JSON else value
