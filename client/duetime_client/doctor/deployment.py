"""Reads data for the checks of `duetime doctor` from AWS and the API. Requires botocore (the extra `aws`)."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from datetime import timedelta
from email.utils import parsedate_to_datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence
    from datetime import datetime

    from duetime_client.client import Client
    from duetime_client.errors import ClientError

WINDOW = timedelta(minutes=15)
"""How far back metrics and logs are read."""
_NONE: Mapping[str, Any] = {}
_MOST_QUERIES = 500
"""Maximum number of metrics in one request (Source: CloudWatch API Reference, "GetMetricData")."""


class NotAsked(Exception):
    """A check cannot read its data, because botocore, the stack's name or access to AWS is missing."""


@dataclass(frozen=True, slots=True)
class Resource:
    """A resource of the stack.

    Attributes:
        logical_id: the resource's name in the template.
        physical_id: the resource's name in AWS.
        properties: the properties in the template; references to other resources are not resolved.
    """

    logical_id: str
    physical_id: str
    properties: Mapping[str, Any]


@dataclass
class Deployment:
    """A deployment; its properties and methods only read from AWS and the API.

    Args:
        session: botocore's session, with credentials and a Region; `None` if botocore is not installed.
        stack: name of the CloudFormation stack; empty if unknown.
        client: client of the API, or the error that occurred when the client was created.
        now: returns the current time of this machine.
        endpoint_url: endpoint of an AWS emulator; empty for AWS.
        is_broken_off: why AWS is no longer called; set by the credentials check or the stack check.
    """

    session: Any
    stack: str
    client: Client | ClientError
    now: Callable[[], datetime]
    endpoint_url: str = ""
    is_broken_off: str = ""
    skew: timedelta | None = None
    """AWS's clock minus this machine's clock, from the last response."""
    _clients: dict[tuple[str, str], Any] = field(default_factory=dict)

    @property
    def api(self) -> Client:
        """A client of the API.

        Raises:
            ClientError: the client could not be created.
        """
        if isinstance(self.client, Exception):
            raise self.client
        return self.client

    def call(
        self,
        service: str,
        operation: str,
        *,
        region: str = "",
        **parameters: Any,  # noqa: ANN401 - any request
    ) -> Mapping[str, Any]:
        """Call an AWS operation.

        Args:
            service: the service's name in botocore.
            operation: method of botocore's client.
            region: a Region other than the environment's Region.
            parameters: parameters of the request.

        Raises:
            NotAsked: botocore is missing, or an earlier check found that AWS cannot be called.
            BotoCoreError: AWS did not respond.
            ClientError: AWS rejected the call (botocore's error).
        """
        client = self._client(service, region)
        found: Mapping[str, Any] = getattr(client, operation)(**parameters)
        date = found["ResponseMetadata"]["HTTPHeaders"].get("date")
        if date:
            self.skew = parsedate_to_datetime(date) - self.now()
        return found

    def pages(self, service: str, operation: str, key: str, **parameters: Any) -> Iterator[Mapping[str, Any]]:  # noqa: ANN401 - as above
        """Yield the entries of all pages of a list operation."""
        client = self._client(service)
        for page in client.get_paginator(operation).paginate(**parameters):
            yield from page.get(key, ())

    def _client(self, service: str, region: str = "") -> Any:  # noqa: ANN401 - botocore has no types
        if self.session is None:
            raise NotAsked('botocore is needed to call AWS: pip install "duetime-client[aws]"')
        if self.is_broken_off:
            raise NotAsked(self.is_broken_off)
        if (service, region) not in self._clients:
            where = {"endpoint_url": self.endpoint_url} if self.endpoint_url else {}
            self._clients[service, region] = self.session.create_client(service, region_name=region or None, **where)
        return self._clients[service, region]

    @property
    def region(self) -> str:
        """The environment's Region; empty if no Region is configured."""
        return str((self.session and self.session.get_config_variable("region")) or "")

    # The stack.

    @cached_property
    def description(self) -> Mapping[str, Any]:
        """The stack, as returned by `DescribeStacks`."""
        if not self.stack:
            raise NotAsked("name the stack with --stack or DUETIME_STACK")
        found: Mapping[str, Any] = self.call("cloudformation", "describe_stacks", StackName=self.stack)["Stacks"][0]
        return found

    @property
    def outputs(self) -> Mapping[str, str]:
        """The outputs of the stack."""
        return {each["OutputKey"]: each["OutputValue"] for each in self.description.get("Outputs", ())}

    @property
    def is_local(self) -> bool:
        """Whether this is a local stack, whose embedded AWS lacks some features of AWS."""
        tags = {each["Key"]: each["Value"] for each in self.description.get("Tags", ())}
        return tags.get("environment") == "local" or self.stack.endswith("-local")

    @cached_property
    def _by_type(self) -> Mapping[str, Sequence[Resource]]:
        body = self.call("cloudformation", "get_template", StackName=self.stack, TemplateStage="Processed")[
            "TemplateBody"
        ]
        template = json.loads(body) if isinstance(body, str) else body
        found: dict[str, list[Resource]] = {}
        for each in self.pages(
            "cloudformation", "list_stack_resources", "StackResourceSummaries", StackName=self.stack
        ):
            logical = each["LogicalResourceId"]
            properties = template["Resources"].get(logical, {}).get("Properties", _NONE)
            resource = Resource(logical, each.get("PhysicalResourceId", ""), properties)
            found.setdefault(each["ResourceType"], []).append(resource)
        return found

    def resources(self, type_: str) -> Sequence[Resource]:
        """The stack's resources with a CloudFormation type."""
        return self._by_type.get(type_, ())

    @property
    def physical_ids(self) -> Mapping[str, str]:
        """The physical id of every resource, by logical id."""
        return {each.logical_id: each.physical_id for some in self._by_type.values() for each in some}

    @cached_property
    def functions(self) -> Mapping[str, Resource]:
        """The Lambda functions of duetime by name, such as `worker`, without functions that the CDK adds."""
        found: dict[str, Resource] = {}
        for each in self.resources("AWS::Lambda::Function"):
            name = _function_name(each)
            if name:
                # Each package of handlers has a worker function with the same Lambda handler.
                found[name if name not in found else each.logical_id] = each
        return found

    @cached_property
    def configurations(self) -> Mapping[str, Mapping[str, Any]]:
        """The configuration of each function, as returned by `GetFunctionConfiguration`."""
        return {
            name: self.call("lambda", "get_function_configuration", FunctionName=each.physical_id)
            for name, each in self.functions.items()
        }

    @cached_property
    def mappings(self) -> Mapping[str, Mapping[str, Any]]:
        """The event source mappings by logical id, as returned by `GetEventSourceMapping`."""
        return {
            each.logical_id: self.call("lambda", "get_event_source_mapping", UUID=each.physical_id)
            for each in self.resources("AWS::Lambda::EventSourceMapping")
        }

    @cached_property
    def queues(self) -> Mapping[str, Mapping[str, str]]:
        """The attributes of each queue, by logical id."""
        return {
            each.logical_id: self.call(
                "sqs", "get_queue_attributes", QueueUrl=each.physical_id, AttributeNames=["All"]
            ).get("Attributes", {})
            for each in self.resources("AWS::SQS::Queue")
        }

    @cached_property
    def table(self) -> Mapping[str, Any]:
        """The tasks table, as returned by `DescribeTable`."""
        found: Mapping[str, Any] = self.call("dynamodb", "describe_table", TableName=self.outputs["TableName"])["Table"]
        return found

    def function_of(self, reference: object) -> str:
        """The short name of the function with an ARN or a name; the given text if the stack has no such function."""
        text = str(reference)
        name = text.partition(":function:")[2].partition(":")[0] or text
        return next((short for short, each in self.functions.items() if each.physical_id == name), text)

    # Recent errors.

    def metrics(
        self, namespace: str, name: str, statistic: str, dimension: str, values: Mapping[str, str]
    ) -> Mapping[str, float]:
        """Read the sum or the maximum of a metric over the last fifteen minutes for several resources.

        Args:
            namespace: the metric's namespace, such as `AWS/Lambda`.
            name: name of the metric.
            statistic: `Sum` or `Maximum`.
            dimension: the name of the metric's only dimension.
            values: the dimension's value for each resource, by a key that the caller chooses.

        Returns:
            the metric's values by the same keys; resources without data are omitted.
        """
        keys = list(values)[:_MOST_QUERIES]
        queries = [
            {
                "Id": f"m{number}",
                "MetricStat": {
                    "Metric": {
                        "Namespace": namespace,
                        "MetricName": name,
                        "Dimensions": [{"Name": dimension, "Value": values[key]}],
                    },
                    "Period": 60,
                    "Stat": statistic,
                },
            }
            for number, key in enumerate(keys)
        ]
        if not queries:
            return {}
        now = self.now()
        answer = self.call(
            "cloudwatch", "get_metric_data", MetricDataQueries=queries, StartTime=now - WINDOW, EndTime=now
        )
        found = {each["Id"]: each["Values"] for each in answer["MetricDataResults"]}
        reduced = sum if statistic == "Sum" else max
        return {key: float(reduced(found[f"m{number}"])) for number, key in enumerate(keys) if found.get(f"m{number}")}

    def log_lines(self, function: str, pattern: str, limit: int = 50) -> Sequence[str]:
        """The first `limit` log lines of a function that match a pattern in the last fifteen minutes, oldest first."""
        client = self._client("logs")
        since = round((self.now() - WINDOW).timestamp() * 1000)
        try:
            pages = client.get_paginator("filter_log_events").paginate(
                logGroupName=log_group(self.configurations[function]),
                startTime=since,
                filterPattern=pattern,
                PaginationConfig={"MaxItems": limit},
            )
            return [str(event["message"]).strip() for page in pages for event in page.get("events", ())]
        except client.exceptions.ResourceNotFoundException:
            return []  # nothing has been logged yet


def log_group(configuration: Mapping[str, Any]) -> str:
    """The log group of a function."""
    return str(configuration.get("LoggingConfig", {}).get("LogGroup") or f"/aws/lambda/{configuration['FunctionName']}")


def _function_name(resource: Resource) -> str:
    """Return `worker` for the handler `worker.handler.handler`; empty for functions that are not part of duetime."""
    parts = str(resource.properties.get("Handler", "")).split(".")
    return parts[0] if parts[1:] == ["handler", "handler"] else ""
