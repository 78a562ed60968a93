"""Metrics as panels and alarms name them, before it is known what their queues and functions are called."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.metrics import METRICS, NAMESPACE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime_cdk.environments import FunctionName

SERVICE = "service"
"""The dimension of every metric that a function writes itself."""


@dataclass(frozen=True, slots=True)
class Source:
    """One metric and how its values are combined.

    Attributes:
        namespace: CloudWatch's; empty for the metrics that the functions write, whose namespace is the environment's.
        name: of the metric.
        dimensions: by which it is found; a value that begins with `$` names a resource of the deployment.
        statistic: `Sum`, `Maximum`, `Average`, `SampleCount`, `p50` and so on.
        label: what a panel calls it.
    """

    namespace: str
    name: str
    dimensions: Mapping[str, str]
    statistic: str
    label: str


def namespace_of(stack: str) -> str:
    """Where the functions of a stack write, by its name: the stacks of one account are kept apart."""
    return f"{NAMESPACE}/{stack}"


def service_of(function: FunctionName | str) -> str:
    """What a function's log lines and metrics belong to."""
    return f"duetime-{function}"


def own(name: str, statistic: str, function: str, label: str = "", **split: str) -> Source:
    """A metric that a function writes itself.

    Args:
        name: as in `duetime.metrics`.
        statistic: of its values.
        function: which writes it.
        label: what a panel calls it; its name, unless another is given.
        split: a value of the metric's further dimension.
    """
    metric = METRICS[name]
    if function not in metric.functions or not set(split) <= {metric.dimension}:
        raise ValueError(f"{function} does not write {name} by {split}")
    dimensions = {SERVICE: service_of(function), **split}
    return Source("", name, dimensions, statistic, label or " ".join((name, *split.values())))


def everywhere(name: str, statistic: str, label: str = "", **split: str) -> list[Source]:
    """A metric of each of the functions that write it."""
    functions = METRICS[name].functions
    shown = label or " ".join((name, *split.values()))
    return [
        own(name, statistic, function, f"{shown}, {function}" if len(functions) > 1 else shown, **split)
        for function in functions
    ]


def queue(queue_name: str, name: str, statistic: str, label: str) -> Source:
    """A metric of a queue: `high`, `normal`, `low`, or `dead_letters`."""
    return Source("AWS/SQS", name, {"QueueName": f"$queue_{queue_name}"}, statistic, label)


def function_metric(function: str, name: str, statistic: str, label: str = "") -> Source:
    """What Lambda measures of a function."""
    return Source("AWS/Lambda", name, {"FunctionName": f"$function_{function}"}, statistic, label or function)


def table(name: str, statistic: str, label: str, index: str = "") -> Source:
    """What DynamoDB measures of the table, or of one of its indexes."""
    by_index = {"GlobalSecondaryIndexName": index} if index else {}
    return Source("AWS/DynamoDB", name, {"TableName": "$table", **by_index}, statistic, label)


def table_operation(operation: str, name: str, statistic: str, label: str) -> Source:
    """What DynamoDB measures of one kind of request to the table."""
    return Source("AWS/DynamoDB", name, {"TableName": "$table", "Operation": operation}, statistic, label)


def api(name: str, statistic: str, label: str) -> Source:
    """What API Gateway measures of the API."""
    return Source("AWS/ApiGateway", name, {"ApiId": "$api"}, statistic, label)
