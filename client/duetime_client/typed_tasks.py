"""`client.tasks.of(...)`: tasks of one type, with the class of their payload."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar, Unpack

from duetime_client.errors import ClientError
from duetime_client.resource import AsyncResource, Operation, Resource, SyncResource
from duetime_client.task_creation import create_task, create_tasks, creation_headers
from duetime_common.handler_retries import HANDLER_DEFINITION

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from duetime_client.io_operations import Request, Steps
    from duetime_client.task import Task
    from duetime_client.task_creation import Results
    from duetime_client.task_definitions import TaskDefinition
    from duetime_client.task_request_fields import NewTask, TaskFields, TaskOptions

P = TypeVar("P")


class NoTaskType(ClientError, TypeError):
    """`tasks.of` was given something without a task type, such as a class that is not a handler, or a type's name."""

    def __init__(self, definition: object) -> None:
        name, instead = repr(definition), f"TaskType({definition!r})"
        if not isinstance(definition, str):
            # `repr` is not used, because it may contain payload values.
            name, instead = getattr(definition, "__name__", type(definition).__name__), "TaskType(type, PayloadClass)"
        super().__init__(f"{name} has no task type: write tasks.of({instead}), or give a handler")


class TypedTaskOperations(Resource, Generic[P]):
    """Creates tasks of one type. A payload is checked before it is sent."""

    def __init__(self, runner: Any, definition: TaskDefinition[P] | type) -> None:  # noqa: ANN401 - see `Resource`
        super().__init__(runner)
        # A class must have its own definition, not an inherited definition.
        found: Any = vars(definition).get(HANDLER_DEFINITION) if isinstance(definition, type) else definition
        # The type is checked at run time, because type checkers accept any class as a handler.
        if not (hasattr(found, "task_type") and hasattr(found, "encode")):
            raise NoTaskType(definition)
        self._definition: TaskDefinition[P] = found

    @Operation
    def create(
        self,
        payload: P,
        /,
        *,
        idempotency_key: str | None = None,
        traceparent: str | None = None,
        wait_seconds: int = 0,
        **options: Unpack[TaskOptions],
    ) -> Request[Task] | Steps[Task]:
        """Create a task that is due now; see `tasks.create`.

        Raises:
            PayloadInvalid: The payload does not match the type.
        """
        fields = {"payload": self._definition.encode(payload), **options}
        headers = creation_headers(idempotency_key, traceparent)
        return create_task(self._session, self._definition.task_type, fields, headers, wait_seconds)

    @Operation
    def at(
        self,
        due_at: datetime | str,
        payload: P,
        /,
        *,
        idempotency_key: str | None = None,
        traceparent: str | None = None,
        **options: Unpack[TaskOptions],
    ) -> Request[Task] | Steps[Task]:
        """Create a task that is due at a time.

        Raises:
            PayloadInvalid: The payload does not match the type.
            TimeWithoutZone: The time has no zone.
        """
        fields = {"payload": self._definition.encode(payload), "due_at": due_at, **options}
        return create_task(
            self._session, self._definition.task_type, fields, creation_headers(idempotency_key, traceparent)
        )

    @Operation
    def delay(
        self,
        seconds: float,
        payload: P,
        /,
        *,
        idempotency_key: str | None = None,
        traceparent: str | None = None,
        **options: Unpack[TaskOptions],
    ) -> Request[Task] | Steps[Task]:
        """Create a task that is due after a delay in seconds.

        Raises:
            PayloadInvalid: The payload does not match the type.
        """
        fields = {"payload": self._definition.encode(payload), "delay_seconds": seconds, **options}
        return create_task(
            self._session, self._definition.task_type, fields, creation_headers(idempotency_key, traceparent)
        )

    @Operation
    def create_batch(
        self,
        payloads: Iterable[P],
        /,
        *,
        due_at: datetime | str | None = None,
        idempotency_key: str | None = None,
        traceparent: str | None = None,
        **options: Unpack[TaskOptions],
    ) -> Steps[Results]:
        """Create a task for each payload, with the same options and due time (default: now); see `tasks.create_batch`.

        Nothing is sent before all payloads are checked.

        Raises:
            PayloadInvalid: A payload does not match the type.
            TimeWithoutZone: The time has no zone.
        """
        when: TaskFields = {} if due_at is None else {"due_at": due_at}
        tasks: list[NewTask] = [
            {"type": self._definition.task_type, "payload": self._definition.encode(payload), **when, **options}
            for payload in payloads
        ]
        return create_tasks(self._session, tasks, idempotency_key, traceparent)


class TypedTasks(TypedTaskOperations[P], SyncResource):
    """`client.tasks.of(...)` of `Client`."""


class AsyncTypedTasks(TypedTaskOperations[P], AsyncResource):
    """`client.tasks.of(...)` of `AsyncClient`."""
