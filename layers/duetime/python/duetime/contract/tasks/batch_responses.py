"""The bodies of answers to batches of tasks."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NotRequired  # pydantic describes no other before Python 3.12

from typing_extensions import TypedDict  # pydantic describes no other before Python 3.12

from duetime.contract.http.problems import Problem
from duetime.contract.tasks.responses import Estimate, TaskSummary


class TaskBatchAccepted(TypedDict):
    """A task of a batch that was created (201), or the one that holds its unique key (200)."""

    status: Literal[200, 201]
    task: TaskSummary


class TaskBatchRejected(TypedDict):
    """A task of a batch that was not created."""

    status: int
    problem: Problem


class TaskBatchResult(TypedDict):
    """The result of each task of a batch, in its order."""

    results: Sequence[TaskBatchAccepted | TaskBatchRejected]
    estimate: NotRequired[Estimate]
