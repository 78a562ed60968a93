"""References to metrics for panels and alarms, independent of the names of queues and functions."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.metrics import METRICS, NAMESPACE
from duetime.ports.runtime import SHARED_COUNTS, SHARED_SERVICE

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime_cdk.environments import FunctionName

SERVICE = "service"
"""The dimension of every metric that functions write themselves."""


@dataclass(frozen=True, slots=True)
class Source:
    """A metric and its statistic.

    Attributes:
        namespace: CloudWatch's namespace; empty for the functions' own metrics, which use the stack's namespace.
        name: the metric's name.
        dimensions: the metric's dimensions; a value that begins with `$` refers to a resource of the deployment.
        statistic: `Sum`, `Maximum`, `Average`, `SampleCount`, `p50` and so on.
        label: the metric's name in panels.
    """

    namespace: str
    name: str
    dimensions: Mapping[str, str]
    statistic: str
    label: str


def namespace_of(stack: str) -> str:
    """The metric namespace of a stack; each stack in an account has its own namespace."""
    return f"{NAMESPACE}/{stack}"


def service_of(function: FunctionName | str) -> str:
    """The service name in a function's logs and metrics."""
    return f"duetime-{function}"


def own(name: str, statistic: str, function: str, label: str = "", **split: str) -> Source:
    """A metric that one function writes itself.

    Args:
        name: the metric's name, as in `duetime.metrics`.
        statistic: the statistic of the metric's values.
        function: the function that writes the metric.
        label: the metric's name in panels; by default the metric's name.
        split: a value of the metric's additional dimension.
    """
    if function not in METRICS[name].functions or name in SHARED_COUNTS:
        raise ValueError(f"{function} does not write {name} as its own metric")
    return _written(name, statistic, service_of(function), label, split)


def shared(name: str, statistic: str, label: str = "", **split: str) -> Source:
    """A metric to which several functions add."""
    if name not in SHARED_COUNTS:
        raise ValueError(f"functions do not share {name}")
    return _written(name, statistic, SHARED_SERVICE, label, split)


def everywhere(name: str, statistic: str, label: str = "", **split: str) -> list[Source]:
    """A metric that functions write themselves, with a source for each of these functions unless they share it."""
    if name in SHARED_COUNTS:
        return [shared(name, statistic, label, **split)]
    functions = METRICS[name].functions
    shown = label or _label(name, split)
    return [
        own(name, statistic, function, f"{shown}, {function}" if len(functions) > 1 else shown, **split)
        for function in functions
    ]


def _written(name: str, statistic: str, service: str, label: str, split: Mapping[str, str]) -> Source:
    if not set(split) <= {METRICS[name].dimension}:
        raise ValueError(f"{name} is not written by {split}")
    return Source("", name, {SERVICE: service, **split}, statistic, label or _label(name, split))


def _label(name: str, split: Mapping[str, str]) -> str:
    return " ".join((name, *split.values()))


def queue(queue_name: str, name: str, statistic: str, label: str) -> Source:
    """An SQS metric for a queue, such as `high`, `normal`, `low`, or `dead_letters`."""
    return Source("AWS/SQS", name, {"QueueName": f"$queue_{queue_name}"}, statistic, label)


def function_metric(function: str, name: str, statistic: str, label: str = "") -> Source:
    """A Lambda metric for a function."""
    return Source("AWS/Lambda", name, {"FunctionName": f"$function_{function}"}, statistic, label or function)


def table(name: str, statistic: str, label: str, index: str = "") -> Source:
    """A DynamoDB metric for the table or an index."""
    by_index = {"GlobalSecondaryIndexName": index} if index else {}
    return Source("AWS/DynamoDB", name, {"TableName": "$table", **by_index}, statistic, label)


def table_operation(operation: str, name: str, statistic: str, label: str) -> Source:
    """A DynamoDB metric for one operation on the table."""
    return Source("AWS/DynamoDB", name, {"TableName": "$table", "Operation": operation}, statistic, label)


def api(name: str, statistic: str, label: str) -> Source:
    """An API Gateway metric for the API."""
    return Source("AWS/ApiGateway", name, {"ApiId": "$api"}, statistic, label)
