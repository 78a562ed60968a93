"""A task as the API answers it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Self

from pydantic import BaseModel, ConfigDict, Field, PrivateAttr

TERMINAL = frozenset({"succeeded", "failed", "rolled_back", "cancelled"})
"""States that hold an outcome."""


class Progress(BaseModel):
    """How far a running task says it is."""

    model_config = ConfigDict(frozen=True, extra="allow")

    percent: float | None = None
    message: str | None = None


class Failure(BaseModel):
    """Why a task failed, or why its last attempt did."""

    model_config = ConfigDict(frozen=True, extra="allow")

    kind: str = Field(default="", alias="class")
    message: str = ""


class Task(BaseModel):
    """One piece of work with a due time. Fields that a newer API adds are kept as extra attributes."""

    model_config = ConfigDict(frozen=True, extra="allow")

    id: str
    state: str
    type: str
    due_at: datetime
    created_at: datetime
    started_at: datetime | None = None
    finished_at: datetime | None = None
    name: str | None = None
    tags: Mapping[str, str] = Field(default_factory=dict)
    priority: str = "normal"
    target: Mapping[str, object] | None = None
    payload: object = None
    retry: Mapping[str, object] | None = None
    timeout_seconds: float | None = None
    attempt: int = 0
    fence: int = 0
    version: int = 0
    progress: Progress | None = None
    result: object = None
    error: Failure | None = None
    lateness_ms: float | None = None

    _document: Mapping[str, object] = PrivateAttr(default_factory=dict)
    _etag: str | None = PrivateAttr(default=None)

    @classmethod
    def of_document(cls, document: Mapping[str, object], etag: str | None = None) -> Self:
        """The task of an answer's JSON.

        Raises:
            pydantic.ValidationError: The JSON is no task.
        """
        task = cls.model_validate(document)
        task._document = document  # noqa: SLF001 - pydantic sets private attributes after validation only
        task._etag = etag  # noqa: SLF001 - same
        return task

    @property
    def document(self) -> Mapping[str, object]:
        """The task's JSON as the API sent it."""
        return self._document

    @property
    def etag(self) -> str:
        """What `change_task(if_match=…)` compares: the task as it is here, and no later."""
        return self._etag or f'"{self.version}"'

    @property
    def is_terminal(self) -> bool:
        """Whether the task's outcome is known."""
        return self.state in TERMINAL
