"""The api function in this process, with fakes of AWS and a record of every write to the function's stores."""

from __future__ import annotations

import json
import logging
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from duetime import composition
from duetime.adapters.aws_clients import Clients
from duetime.adapters.dynamodb import schema
from duetime.composition import Platform
from duetime.environment_variables import QUEUE_VARIABLES, Variable
from duetime_testing.fakes.task_table import new_table
from tests.clocks import StandingClock
from tests.fakes.session import FakeSession
from tests.functions.api.gateway import Gateway
from tests.grants import SENT_SECRET
from tests.hostile.corpus import PULLED
from tests.hostile.world import furnished

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from duetime_testing.fakes.tables import Table


BUCKET = "duetime-contents"
_READS = ("get", "query", "scan", "batch_get", "describe", "list", "head", "receive")


@dataclass
class InProcess:
    """An environment for the api function with a separate table and separate queues for each world."""

    clock: StandingClock = field(default_factory=StandingClock)
    session: FakeSession = field(init=False)
    api: Gateway = field(default_factory=Gateway)
    says_why: bool = True
    _written: list[str] = field(default_factory=list)
    _worlds: int = 0
    _platform: Platform | None = None

    def __post_init__(self) -> None:
        self.session = FakeSession(self.clock.now)
        self.session.s3.create_bucket(Bucket=BUCKET)
        self.session.heard = self._heard

    def begin(self) -> None:
        """Forget all writes so far."""
        self._written.clear()

    def written(self) -> Sequence[str]:
        """The successful writes to any store since the last call of `begin`."""
        return list(self._written)

    def fresh_world(self) -> dict[str, Sequence[str]]:
        """Create a few resources of every kind in new tables and queues, and return their ids by parameter name."""
        self._worlds += 1
        queues: dict[str, str] = {
            variable: self._queue(priority.value) for priority, variable in QUEUE_VARIABLES.items()
        }
        environ = {
            Variable.TABLE: new_table(self.session.client("dynamodb")),
            Variable.BUCKET: BUCKET,
            Variable.AUTHENTICATION: "none",
            Variable.OPERATORS: "local",
            Variable.ADMINS: "local",
            Variable.API_KEYS: "on",
            Variable.QUOTAS: "{}",
            Variable.INTAKE_OWNER: "local",
            Variable.SUMMARY_SPREAD: "1",
            Variable.WATCH_URL: "wss://live.example.org/live",
            Variable.PULLED_QUEUES: json.dumps({PULLED: self._queue(PULLED)}),
            Variable.PULLERS: json.dumps({PULLED: ["*"]}),
            # Valid requests name this address, where no server listens.
            Variable.HTTP_ALLOW: "127.0.0.1",
            Variable.HTTP_SECRETS: json.dumps({"crm": {"arn": SENT_SECRET, "hosts": ["127.0.0.1"]}}),
            **queues,
        }
        self._platform = Platform(
            environ=environ,
            clock=self.clock,
            clients=Clients(self.session),  # type: ignore[arg-type]  # a fake session
        )
        composition.use(self._platform)
        return furnished(self.api)

    @contextmanager
    def used(self) -> Iterator[None]:
        """Let the function use the newest of these worlds, without logs, inside the context."""
        composition.use(self._platform)
        logging.disable(logging.CRITICAL)
        try:
            yield
        finally:
            logging.disable(logging.NOTSET)
            composition.use(None)

    def tables(self) -> dict[str, Table]:
        """A copy of the tables' contents, for `restore`."""
        return {name: _copied(table) for name, table in self.session.dynamodb.tables.items()}

    def restore(self, tables: dict[str, Table]) -> None:
        """Restore the tables to these contents."""
        self.session.dynamodb.tables = {name: _copied(table) for name, table in tables.items()}

    def _queue(self, name: str) -> str:
        return str(self.session.client("sqs").create_queue(QueueName=f"{name}-{self._worlds}")["QueueUrl"])

    def _heard(self, operation: str, request: dict[str, Any]) -> None:
        """Record a write, except a timer's, because a timer is written first and has no effect by itself."""
        if operation.startswith(_READS):
            return
        sort_key = request.get("Item", {}).get(schema.SORT_KEY, {"S": ""})["S"]
        is_timer = schema.TIMER_MARK in sort_key or schema.SCHEDULE_MARK in sort_key
        if not (operation == "put_item" and is_timer):
            self._written.append(operation)


def _copied(table: Table) -> Table:
    """A copy of a table; the copy shares the items, because a write replaces an item instead of changing it."""
    return replace(
        table,
        indexes={
            name: replace(index, entries={at: set(keys) for at, keys in index.entries.items()}, log=list(index.log))
            for name, index in table.indexes.items()
        },
        partitions={name: dict(items) for name, items in table.partitions.items()},
        earlier={
            name: {key: list(versions) for key, versions in items.items()} for name, items in table.earlier.items()
        },
    )
