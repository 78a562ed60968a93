"""Tests that the client and the command support every task field in the API."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from duetime.contract.tasks.bodies import TaskCreate
from duetime.contract.topologies.definitions import TopologyRunCreate
from duetime.domain.tasks.task_options import TASK_OPTIONS
from duetime_client import Task
from duetime_client.task_request_fields import NewTask
from duetime_client.topology_definitions import RunFields

if TYPE_CHECKING:
    from collections.abc import Callable

    from typer.testing import Result

    from tests.client.deployment import Deployment

OPTIONS = {
    "priority": ("--priority", "low"),
    "retry": ("--max-attempts", "2"),
    "timeout_seconds": ("--timeout", "31"),
    "notify_within_seconds": ("--notify-within", "61"),
    "rollback_on_failure": ("--rollback-on-failure",),
    "lock": ("--lock", "db-17"),
    "locks": ("--lock", "db-17", "--lock", "gpu=shared"),
    "rate": ("--rate-key", "crm", "--rate-limit", "50"),
    "callback_url": ("--callback-url", "https://example.org/ended"),
    "notify_on": ("--notify-to", "https://example.org/alerts", "--notify-late", "300", "--notify-running", "900"),
    "expires_seconds": ("--expires", "600"),
    "fair_key": ("--fair-key", "customer-17"),
    "fair_weight": ("--fair-weight", "3"),
    "name": ("--name", "monthly"),
    "tags": ("--tag", "team=dba"),
}
"""The options that set each field on the command line."""
SHOWN: dict[str, tuple[Any, str]] = {
    "priority": ("low", "low"),
    "lock": ({"key": "db-17", "max_holders": 1, "scope": "task", "wait_seconds": None}, "db-17"),
    "locks": ([{"key": "db-17", "mode": "exclusive"}, {"key": "gpu", "mode": "shared"}], "gpu (shared)"),
    "rate": ({"key": "crm", "limit": 50, "per_seconds": 1, "burst": 0}, "crm"),
    "callback_url": ("https://example.org/ended", "https://example.org/ended"),
    "notify_on": ({"to": "https://example.org/alerts", "failed": True}, "https://example.org/alerts"),
    "expires_seconds": (600, "600 s after its due time"),
    "fair_key": ("customer-17", "customer-17 (weight 3)"),
    "fair_weight": (3, "(weight 3)"),
    "name": ("monthly", "monthly"),
    "tags": ({"team": "dba"}, "team=dba"),
}
"""Fields that `tasks get` shows, each with a value and its output."""
NOT_SHOWN = {"retry", "timeout_seconds", "notify_within_seconds", "rollback_on_failure"}

_OF_A_NODE = "each node of the definition has its own"
NOT_OF_A_RUN = {
    "payload": "the parameters of the definition take its place",
    "target": "it is the definition that the run names",
    **dict.fromkeys(
        ("retry", "timeout_seconds", "notify_within_seconds", "rollback_on_failure", "lock", "locks", "rate"),
        _OF_A_NODE,
    ),
    "allow_unknown_type": "the types of the nodes were checked when the definition was put",
}
"""Task fields that a run of a topology definition lacks, each with the reason."""
ARGUMENTS_OF_A_RUN = {"parameters", "version"}
"""Run fields that are separate arguments of `client.topology_definitions.run`."""


def test_the_client_sends_and_reads_every_task_field() -> None:
    """Every field for creating a task is a keyword, and every field of a response is an attribute."""
    assert set(NewTask.__annotations__) == set(TaskCreate.model_fields)
    assert set(TASK_OPTIONS) <= set(Task.model_fields)


def test_a_definition_run_supports_every_field_or_lists_the_reason() -> None:
    """Each task field is either in `RunFields` or listed here with the reason why runs do not have the field."""
    assert RunFields.__annotations__.keys() | NOT_OF_A_RUN.keys() == TaskCreate.model_fields.keys()
    assert RunFields.__annotations__.keys() & NOT_OF_A_RUN.keys() == set()
    assert RunFields.__annotations__.keys() | ARGUMENTS_OF_A_RUN == TopologyRunCreate.model_fields.keys()


@pytest.mark.parametrize("action", ["create", "update"])
def test_every_task_field_has_an_option(duetime: Callable[..., Result], deployment: Deployment, action: str) -> None:
    """Each task field can be set by options when a task is created or updated."""
    assert set(OPTIONS) == set(TASK_OPTIONS)
    task = "mail"
    if action == "update":
        duetime("tasks", "create", "mail")
        (task,) = deployment.tasks
    for other in ("lock", "locks"):
        # Both fields are set by the same option.
        said = [word for name, words in OPTIONS.items() if name != other for word in words]
        result = duetime("tasks", action, task, *said)
        assert result.exit_code == 0, result.output
        assert set(deployment.received[-1].document) - {"type"} == set(TASK_OPTIONS) - {other}


def test_every_task_field_is_shown(duetime: Callable[..., Result], deployment: Deployment) -> None:
    """Each field that a task can have is either shown by `tasks get` or listed here as not shown."""
    assert set(SHOWN) | NOT_SHOWN == set(TASK_OPTIONS)
    duetime("tasks", "create", "mail")
    (task_id,) = deployment.tasks
    deployment.tasks[task_id] |= {name: value for name, (value, _) in SHOWN.items()}
    shown = duetime("tasks", "get", task_id).stdout
    assert [name for name, (_, words) in SHOWN.items() if words not in shown] == []


def test_an_ordered_key_is_set_by_its_options_and_shown(duetime: Callable[..., Result], deployment: Deployment) -> None:
    """`--order` names the key; `--order-stop` without a key is refused, and the error names the missing option."""
    result = duetime("tasks", "create", "mail", "--order", "customer-17", "--order-stop")
    assert result.exit_code == 0, result.output
    assert deployment.received[-1].document["order"] == {"key": "customer-17", "on_failure": "stop"}
    (task_id,) = deployment.tasks
    deployment.tasks[task_id] |= {"order": {"key": "customer-17", "on_failure": "stop"}}
    assert "customer-17" in duetime("tasks", "get", task_id).stdout
    refused = duetime("tasks", "create", "mail", "--order-stop")
    assert refused.exit_code == 2
    assert "--order" in refused.output


def test_locks_are_repeated_options(duetime: Callable[..., Result], deployment: Deployment) -> None:
    """Each `--lock` adds a lock; `--lock-wait` applies to all locks, but `--lock-max-holders` needs a single lock."""
    duetime("tasks", "create", "mail", "--lock", "db:17=shared", "--lock", "gpu", "--lock-wait", "9")
    assert deployment.received[-1].document["locks"] == [
        {"key": "db:17", "mode": "shared", "wait_seconds": 9},
        {"key": "gpu", "wait_seconds": 9},
    ]
    duetime("tasks", "create", "mail", "--lock", "gpu=shared", "--lock-max-holders", "3")
    assert deployment.received[-1].document["lock"] == {"key": "gpu", "mode": "shared", "max_holders": 3}
    refused = duetime("tasks", "create", "mail", "--lock", "a", "--lock", "b", "--lock-max-holders", "3")
    assert refused.exit_code == 2
    assert "--lock-max-holders" in refused.output
