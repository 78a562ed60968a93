"""What duetime calls of a client of ECS, whose whole interface would be a package of type stubs more."""

from __future__ import annotations

from typing import Any, Protocol


class EcsClient(Protocol):
    """What is called of a client of ECS."""

    exceptions: Any

    def run_task(self, **request: Any) -> dict[str, Any]:  # noqa: ANN401 - boto3's own
        """Source: ECS API Reference, RunTask."""
        ...

    def describe_tasks(self, **request: Any) -> dict[str, Any]:  # noqa: ANN401 - boto3's own
        """Source: ECS API Reference, DescribeTasks."""
        ...

    def stop_task(self, **request: Any) -> dict[str, Any]:  # noqa: ANN401 - boto3's own
        """Source: ECS API Reference, StopTask."""
        ...
