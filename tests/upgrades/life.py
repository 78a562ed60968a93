"""Writes the items of a deployment on AWS fakes to files, or reads items from files and finishes their tasks."""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from duetime.adapters.dynamodb.task_items import key_of
from duetime.adapters.sqs import body_of
from duetime.composition import composed
from duetime.composition.core import CoreServices
from duetime.domain.ids import TaskId
from duetime.domain.tasks.states import State
from duetime.domain.tasks.task_options import Priority
from duetime.domain.times import SECOND
from duetime.environment_variables import Variable
from duetime.handlers import REGISTRY, Context, Registered
from duetime.services.enqueue import message_for
from tests.functions.api.gateway import Gateway
from tests.functions.stack import OWNER, Stack

if TYPE_CHECKING:
    from collections.abc import Iterable

    from duetime.domain.tasks.task import Task

ROUNDS = 20
PATIENCE = 7 * SECOND
"""The time after a lease's end from which other processes also treat the lease as ended."""


def _flaky(context: Context, _payload: object) -> str:
    if context.attempt == 1:
        raise LookupError("not yet: no such row")
    return "done"


def _boom(_context: Context, _payload: object) -> str:
    raise ValueError("never: no such table")


def _deferring(context: Context, _payload: object) -> object:
    return context.defer() if context.attempt == 1 else "done"


HANDLERS = {
    "report": Registered({"run": lambda _context, payload: {"got": payload}}),
    "flaky": Registered({"run": _flaky}),
    "boom": Registered({"run": _boom}),
    "deferring": Registered({"run": _deferring}),
    "undoing": Registered({"run": _boom, "rollback": lambda _context, _payload: None}),
    "staged": Registered(
        {
            "prepare": lambda _context, _payload: None,
            "run": lambda _context, _payload: "done",
            "clean": lambda _context, _payload: None,
        }
    ),
}
"""The task types in frozen records, which must have handlers as long as the records exist."""


@dataclass
class Life:
    """A deployment in which tasks continue from any stored items."""

    stack: Stack
    api: Gateway

    @classmethod
    def faked(cls) -> Life:
        """Return an empty deployment."""
        REGISTRY.update(HANDLERS)
        return cls(
            Stack.faked(
                {
                    Variable.OPERATORS: OWNER,
                    Variable.ADMINS: OWNER,
                    Variable.API_KEYS: "on",
                    Variable.QUOTAS: "{}",
                    Variable.INTAKE_OWNER: OWNER,
                }
            ),
            Gateway(headers={"X-Duetime-Owner": OWNER}),
        )

    def create(self, kind: str = "report", **fields: Any) -> str:  # noqa: ANN401 - fields of a task
        """Create a task and return its id."""
        return str(self.api.create({"type": kind, **fields})["id"])

    def read(self, task_id: str) -> Task:
        """Return a record, which must exist."""
        task = composed(CoreServices).stores.tasks.read(TaskId(task_id))
        assert task is not None, task_id
        return task

    def work(self, task_id: str) -> None:
        """Let the worker process a task's message when the task is due."""
        task = self.read(task_id)
        self.stack.clock.at = max(self.stack.clock.at, task.next_at)
        url = self.stack.queues[Priority.NORMAL]
        # Earlier messages are removed, so that the batch has only this message.
        while self.stack.receive(Priority.NORMAL)["Records"]:
            pass
        self.stack.cloud.sqs.send_message(QueueUrl=url, MessageBody=body_of(message_for(task)))
        self.stack.work(Priority.NORMAL)

    def finish(self, task_id: str) -> str:
        """Finish a task by simulating everything that it may wait for, and return its final state."""
        for _ in range(ROUNDS):
            task = self.read(task_id)
            if task.finished_at is not None:
                break
            if task.state is State.PAUSED:
                assert self.api.send("POST", f"/v1/tasks/{task_id}/resume").status == 200
            self.stack.clock.at = max(self.stack.clock.at, (task.lease_expires_at or 0) + PATIENCE)
            self.work(task_id)
        return self.read(task_id).state.value

    def items(self) -> list[dict[str, Any]]:
        """Return every item in the table as JSON, in the order of the keys."""
        found = self.stack.cloud.dynamodb.scan(TableName=self.table)["Items"]
        return sorted((as_json(item) for item in found), key=lambda item: (item["p"]["S"], item["s"]["S"]))

    def item(self, task_id: str) -> dict[str, Any]:
        """Return a record's item as JSON."""
        key = key_of(TaskId(task_id))
        return dict(as_json(self.stack.cloud.dynamodb.get_item(TableName=self.table, Key=key)["Item"]))

    def put(self, items: Iterable[dict[str, Any]]) -> None:
        """Store items that were read from JSON."""
        for item in items:
            self.stack.cloud.dynamodb.put_item(TableName=self.table, Item=of_json(item))

    @property
    def table(self) -> str:
        """Return the name of the tasks table."""
        return self.stack.environ[Variable.TABLE]


def as_json(value: Any) -> Any:  # noqa: ANN401 - any attribute value
    """Return attribute values with their bytes as base64."""
    if isinstance(value, bytes):
        return base64.b64encode(value).decode()
    if isinstance(value, dict):
        return {key: as_json(each) for key, each in value.items()}
    return [as_json(each) for each in value] if isinstance(value, list) else value


def of_json(value: Any, letter: str = "") -> Any:  # noqa: ANN401 - any attribute value
    """Return attribute values from the JSON of `as_json`."""
    if letter == "B":
        return base64.b64decode(value)
    if isinstance(value, dict):
        return {key: of_json(each, key if len(value) == 1 else "") for key, each in value.items()}
    return [of_json(each) for each in value] if isinstance(value, list) else value
