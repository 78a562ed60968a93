from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, field
from datetime import date
from io import BytesIO
from itertools import count
from typing import TYPE_CHECKING, Any

import pytest

from duetime.contract import archive as contract
from duetime.contract.archive import JsonLines
from duetime.domain.archive_objects import TASKS_PREFIX, ArchiveObject
from duetime.domain.ids import TaskId
from duetime.domain.tasks.attempt_records import TaskError
from duetime.domain.tasks.states import State
from duetime_client import archive as client
from duetime_client.archive import Archive, ArchiveQuery, ArchiveQueryInvalid
from duetime_client.archive_columns import BOOLEAN, COLUMNS, INSTANT, INTEGER, JSON, TEXT
from duetime_client.archive_objects import BucketObjects, FolderObjects, bucket_of, prefix_of
from tests.clocks import NOW
from tests.domain.factories import task

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from typer.testing import Result

    from duetime.domain.tasks.task import Task

DAY = "2026-11-21"
FIRST = date.fromisoformat(DAY)
KINDS = {
    contract.Kind.TEXT: TEXT,
    contract.Kind.INTEGER: INTEGER,
    contract.Kind.BOOLEAN: BOOLEAN,
    contract.Kind.INSTANT: INSTANT,
    contract.Kind.JSON: JSON,
}


def write(folder: Path, tasks: list[Task], day: str = DAY) -> None:
    """Write tasks to a copy of an archive, as the archive function does."""
    path = folder / ArchiveObject(day, tasks).key
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress("".join(JsonLines().line(each, ()) + "\n" for each in tasks).encode()))


_NUMBERS = count()


def succeeded(**fields: Any) -> Task:  # noqa: ANN401 - fields of a task
    """Return another task, which has succeeded."""
    return task(**{"id": TaskId.of(NOW, 0, next(_NUMBERS)), "state": State.SUCCEEDED, "finished_at": NOW, **fields})


def failed(**fields: Any) -> Task:  # noqa: ANN401 - fields of a task
    """Return another task, which has failed."""
    return succeeded(**{"state": State.FAILED, "error": TaskError("Timeout", "took too long"), **fields})


def query(folder: Path, where: str = "true", **fields: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - of a query
    """Run a query on a copy of an archive."""
    wanted = ArchiveQuery(**{"first": FIRST, "last": FIRST, "where": where, "columns": ["id"], **fields})
    return Archive(FolderObjects(folder)).query(wanted, lambda _done, _size: None)


def test_the_columns_are_the_fields_of_an_archive_line() -> None:
    """The client's columns are an archive line's fields, in the same order and with matching types."""
    assert {name: KINDS[kind] for name, kind in contract.COLUMNS.items()} == COLUMNS
    assert prefix_of(FIRST) == f"{TASKS_PREFIX}day={DAY}/"


def test_a_condition_can_read_json_fields(tmp_path: Path) -> None:
    """Payload, error and tags are read as JSON and instants as times, and all are shown in the API's form."""
    found, other = failed(tags={"team": "dba"}), succeeded()
    write(tmp_path, [found, other])
    where = "state = 'failed' AND error->>'type' = 'Timeout' AND tags->>'team' = 'dba' AND finished_at > '2026-11-01'"
    (row,) = query(tmp_path, where, columns=["id", "finished_at", "error", "attempts", "version"])
    line = json.loads(JsonLines().line(found, ()))
    assert row == {name: line[name] for name in row}


def test_a_task_in_several_objects_is_returned_once(tmp_path: Path) -> None:
    """If a redelivered batch was split differently, a task that is in several objects is still returned only once."""
    first, second = failed(), failed()
    write(tmp_path, [first, second])
    write(tmp_path, [second])
    assert sorted(row["id"] for row in query(tmp_path)) == sorted([first.id.text, second.id.text])


def test_only_objects_of_the_requested_days_are_read(tmp_path: Path) -> None:
    """A query includes both its first and its last day."""
    tasks = {day: failed() for day in ("2026-11-20", "2026-11-21", "2026-11-22", "2026-11-23")}
    for day, each in tasks.items():
        write(tmp_path, [each], day)
    rows = query(tmp_path, last=date(2026, 11, 22))
    assert {row["id"] for row in rows} == {tasks["2026-11-21"].id.text, tasks["2026-11-22"].id.text}


def test_a_limited_query_returns_the_latest_tasks_first(tmp_path: Path) -> None:
    """A query with a limit returns the tasks that ended last."""
    tasks = [failed(finished_at=NOW + number) for number in range(5)]
    write(tmp_path, tasks)
    assert [row["id"] for row in query(tmp_path, limit=2)] == [tasks[4].id.text, tasks[3].id.text]


def test_days_without_objects_return_no_tasks(tmp_path: Path) -> None:
    """A query over days without objects returns no tasks, but still rejects an invalid condition."""
    assert query(tmp_path) == []
    with pytest.raises(ArchiveQueryInvalid, match="no_such"):
        query(tmp_path, "no_such = 1")


@pytest.mark.parametrize(
    "where",
    [
        "id IN (SELECT content FROM read_text('{outside}'))",
        "EXISTS (SELECT * FROM '{outside}')",
        "EXISTS (SELECT * FROM read_csv('https://example.org/x.csv'))",
        "true); COPY (SELECT 1) TO '{outside}'; SELECT * FROM tasks WHERE (true",
        "true); DROP VIEW tasks; SELECT (true",
        "true); SET enable_external_access = true; SELECT (true",
        "true)); ATTACH '{outside}' AS x; --",
        "true; INSTALL httpfs",
        "state = ",
        "",
        "getenv('NOW') = ''",
    ],
)
def test_a_condition_can_only_read_the_archive(tmp_path: Path, where: str) -> None:
    """A condition that reads files or the network, adds statements or changes settings is rejected without effect."""
    outside = tmp_path / "secret.txt"
    outside.write_text("secret")
    write(tmp_path / "copy", [failed()])
    with pytest.raises(ArchiveQueryInvalid):
        query(tmp_path / "copy", where.replace("{outside}", str(outside)))
    assert outside.read_text() == "secret"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy", "secret.txt"]


def test_a_condition_can_end_with_a_comment(tmp_path: Path) -> None:
    """A comment at the end of a condition does not hide the rest of the query."""
    write(tmp_path, [failed()])
    assert query(tmp_path, "state = 'succeeded' -- none") == []


def test_a_query_over_too_many_days_or_bytes_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A query over more days or bytes than fit on a machine is refused before anything is downloaded."""
    with pytest.raises(ArchiveQueryInvalid, match="401 days"):
        ArchiveQuery(date(2025, 1, 1), date(2026, 2, 5))
    with pytest.raises(ArchiveQueryInvalid, match="0 days"):
        ArchiveQuery(date(2026, 1, 2), date(2026, 1, 1))
    with pytest.raises(ArchiveQueryInvalid, match="no such columns: nonsense"):
        ArchiveQuery(FIRST, FIRST, columns=["id", "nonsense"])
    write(tmp_path, [failed()])
    monkeypatch.setattr(client, "MOST_BYTES", 10)
    with pytest.raises(ArchiveQueryInvalid, match="fewer days"):
        query(tmp_path)


@dataclass
class FakeS3:
    """Implements the parts of S3 that the client uses, with one object per page.

    Attributes:
        objects: the bodies by key.
    """

    objects: dict[str, bytes]
    read: list[str] = field(default_factory=list)

    def get_paginator(self, name: str) -> FakeS3:
        """Return the paginator for listings."""
        assert name == "list_objects_v2"
        return self

    def paginate(self, *, Bucket: str, Prefix: str) -> Iterator[dict[str, Any]]:  # noqa: N803 - boto's own
        """Return the pages of a listing."""
        assert Bucket == "archive"
        for key, body in self.objects.items():
            yield {"Contents": [{"Key": key, "Size": len(body)}]} if key.startswith(Prefix) else {}

    def get_object(self, *, Bucket: str, Key: str) -> dict[str, Any]:  # noqa: N803 - same
        """Return an object."""
        assert Bucket == "archive"
        self.read.append(Key)
        return {"Body": BytesIO(self.objects[Key])}


def test_only_objects_of_the_requested_days_are_downloaded(tmp_path: Path) -> None:
    """Objects are listed by the days in their keys, and the progress of the download is reported."""
    tasks = [failed(), failed(), failed()]
    write(tmp_path, [tasks[0]])
    write(tmp_path, [tasks[1]])
    write(tmp_path, [tasks[2]], "2026-11-22")
    paths = sorted(tmp_path.rglob("*.gz"))
    s3 = FakeS3({str(path.relative_to(tmp_path)): path.read_bytes() for path in paths})
    told: list[tuple[int, int]] = []
    rows = Archive(BucketObjects(s3, "archive")).query(
        ArchiveQuery(FIRST, FIRST, columns=["id"]), lambda done, size: told.append((done, size))
    )
    assert {row["id"] for row in rows} == {tasks[0].id.text, tasks[1].id.text}
    assert len(s3.read) == len(told) == 2
    assert told[-1][0] == told[-1][1] == sum(len(s3.objects[key]) for key in s3.read)


def test_the_bucket_is_read_from_the_outputs_of_the_stack() -> None:
    """The bucket's name is an output of the stack; a stack without an archive lacks this output."""

    class Session:
        outputs: tuple[dict[str, str], ...] = ({"OutputKey": "ArchiveBucketName", "OutputValue": "archive-1"},)

        def create_client(self, name: str) -> Session:
            assert name == "cloudformation"
            return self

        def describe_stacks(self, *, StackName: str) -> dict[str, Any]:  # noqa: N803 - boto's own
            assert StackName == "duetime-prod"
            return {"Stacks": [{"Outputs": list(self.outputs)}]}

    session = Session()
    assert bucket_of(session, "duetime-prod") == "archive-1"
    session.outputs = ()
    assert bucket_of(session, "duetime-prod") is None


def test_the_archive_command_prints_a_table_or_json(tmp_path: Path, duetime: Callable[..., Result]) -> None:
    """The command queries a local copy of the archive and prints a table or JSON."""
    found = failed()
    write(tmp_path, [found, succeeded()])
    some = ["archive", "query", "--folder", str(tmp_path), "--from", DAY, "--to", DAY, "--where", "state = 'failed'"]
    result = duetime(*some)
    assert result.exit_code == 0, result.output
    assert found.id.text in result.output
    assert "took too long" in result.output
    result = duetime(*some, "--json", "--columns", "id, error")
    assert json.loads(result.stdout) == [
        {"id": found.id.text, "error": {"type": "Timeout", "message": "took too long"}}
    ]
    result = duetime(*some[:-1], "state = 'paused'")
    assert "no matching tasks" in result.output


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--from", DAY], "--stack"),
        (["--from", "yesterday", "--folder", "."], "2026-11-01"),
        (["--from", DAY, "--folder", ".", "--columns", "nonsense"], "no such columns"),
        (["--from", DAY, "--folder", ".", "--where", "state ="], "DuckDB"),
    ],
)
def test_an_invalid_query_is_an_error_without_traceback(
    duetime: Callable[..., Result], arguments: list[str], said: str
) -> None:
    """The error for an invalid query is printed on the error stream, without a traceback."""
    result = duetime("archive", "query", *arguments)
    assert result.exit_code == 2
    assert said in result.output
    assert "Traceback" not in result.output


def test_without_duckdb_the_error_names_the_extra_to_install(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, duetime: Callable[..., Result]
) -> None:
    """If DuckDB is not installed, the error names the extra to install."""

    def missing(*_arguments: object) -> None:
        raise ModuleNotFoundError("duckdb")

    monkeypatch.setattr(client, "run", missing)
    result = duetime("archive", "query", "--from", DAY, "--to", DAY, "--folder", str(tmp_path))
    assert result.exit_code == 1
    assert "duetime-client[archive]" in " ".join(result.output.split())
