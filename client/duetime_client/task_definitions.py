"""Task types with the class of their payload."""

from __future__ import annotations

from typing import Any, Generic, Protocol, TypeVar

from duetime_client.errors import ClientError

P = TypeVar("P")
P_contra = TypeVar("P_contra", contravariant=True)


class ResultNotJson(ValueError):
    """The result of a handler is not JSON; another attempt would not help."""


class PayloadInvalid(ClientError, ValueError):
    """A payload does not match its type. The message names the fields but never a value."""


class ResultInvalid(ClientError, ValueError):
    """A result does not match the requested class. The message names the fields but never a value."""


class TaskDefinition(Protocol[P_contra]):
    """A task type: a `TaskType`, or a function registered by `handler` or `Worker.task`."""

    @property
    def task_type(self) -> str:
        """Its name."""
        ...

    def encode(self, payload: P_contra, /) -> Any:  # noqa: ANN401 - any JSON
        """A payload as JSON."""
        ...


class TaskType(Generic[P]):
    """A task type, for programs that create tasks but do not have the handler.

    Args:
        task_type: Its name.
        payload: The class of its payload: a pydantic model or a dataclass. Without a class, any JSON is accepted.
    """

    def __init__(self, task_type: str, payload: type[P] | None = None) -> None:
        self.task_type = task_type
        self.payload_model = payload

    def encode(self, payload: P) -> Any:  # noqa: ANN401 - any JSON
        """A payload as JSON.

        Raises:
            PayloadInvalid: The payload is not valid.
        """
        if self.payload_model is None:
            return payload
        from duetime_common.payload_models import to_json  # noqa: PLC0415 - only types with a class need it

        try:
            return to_json(self.payload_model, payload)
        except ValueError as error:
            raise PayloadInvalid(f"the payload of {self.task_type!r} is {error}") from None

    def decode(self, document: object) -> P:
        """Parse JSON as a payload.

        Raises:
            PayloadInvalid: The payload is not valid.
        """
        if self.payload_model is None:
            plain: Any = document
            payload: P = plain
            return payload
        from duetime_common.payload_models import from_json  # noqa: PLC0415 - same

        try:
            return from_json(self.payload_model, document)
        except ValueError as error:
            raise PayloadInvalid(f"the payload of {self.task_type!r} is {error}") from None
