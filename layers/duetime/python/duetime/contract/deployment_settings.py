"""Settings of the deployment over REST: what callers may do, and retention times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict  # pydantic requires it before Python 3.12

from duetime.contract.http.operation import Operation, Returns
from duetime.domain.callers import Role
from duetime.domain.dispatch.enqueue_plan import Precision


class PulledType(TypedDict):
    """A type whose tasks are leased by pull workers."""

    type: str
    may_lease: Annotated[bool, Field(description="Whether the caller may lease its tasks.")]


class UsableSecret(TypedDict):
    """A secret that HTTP targets may be called with."""

    name: Annotated[str, Field(description="Its name in `auth` of a target.")]
    hosts: Annotated[Sequence[str], Field(description="Hosts that it is sent to.")]


class TypeRetention(TypedDict):
    """How long ended tasks of some types are kept."""

    types: Annotated[str, Field(description="A pattern of types; `*` stands for any characters, `?` for one.")]
    days: Annotated[float, Field(description="How long an ended task of these types can be read, in days.")]


class LogLocation(TypedDict):
    """The place of the workers' logs."""

    stack: Annotated[str, Field(description="Name of the CloudFormation stack, for `duetime logs --stack`.")]
    region: Annotated[str | None, Field(description="AWS region of the log group; null on the local stack.")]
    log_group: Annotated[
        str | None, Field(description="CloudWatch log group of the worker function; null on the local stack.")
    ]


class OwnQuota(TypedDict):
    """A quota of the caller."""

    quota: Annotated[str, Field(description="Its name, such as `creates_per_second`.")]
    limit: Annotated[int, Field(description="The most that the caller may use.")]
    used: Annotated[float, Field(description="What the caller uses: in a second, averaged over five, or at once.")]


class DeploymentSettings(TypedDict):
    """The rights of the deployment's callers, and its configuration."""

    owner: Annotated[str, Field(description="The owner that the caller acts for; by default, its own identity.")]
    owners: Annotated[Sequence[str], Field(description="All owners that the caller may act for, in order of name.")]
    roles: Annotated[
        Sequence[Role], Field(description="What the caller may do: its roles, with those that they include.")
    ]
    is_operator: Annotated[bool, Field(description="Whether the caller may use switches for all owners.")]
    authentication: Annotated[Literal["iam", "jwt", "none"], Field(description="How callers are authenticated.")]
    handler_types: Annotated[
        Sequence[str] | None, Field(description="Task types that have a Python handler; null if they are not known.")
    ]
    pulled_types: Annotated[Sequence[PulledType], Field(description="Task types that pull workers lease.")]
    aws_targets: Annotated[
        Sequence[str], Field(description="Patterns of the ARNs of the AWS resources that tasks may call.")
    ]
    private_http_hosts: Annotated[
        Sequence[str], Field(description="Hosts that HTTP targets may call although they are not public.")
    ]
    http_secrets: Annotated[
        Sequence[UsableSecret], Field(description="Secrets that the caller's HTTP targets may be called with.")
    ]
    retention_days: Annotated[float, Field(description="How long an ended task can be read, in days.")]
    retention_by_type: Annotated[
        Sequence[TypeRetention],
        Field(description="The same for some types; the first matching pattern applies."),
    ]
    is_archived: Annotated[bool, Field(description="Whether ended tasks are archived in S3 after that.")]
    is_counted: Annotated[bool, Field(description="Whether there is a summary of the numbers of tasks.")]
    precision: Annotated[Precision, Field(description="How long workers hold tasks to start them exactly on time.")]
    shards: Annotated[int, Field(description="Number of parts that the tasks of a minute are spread over.")]
    look_ahead_seconds: Annotated[
        float, Field(description="How long before its due time a task is put on a queue, in seconds.")
    ]
    requests_per_second: Annotated[
        int | None, Field(description="Steady rate of requests, of all callers together; null if it is not known.")
    ]
    waiting_requests: Annotated[
        int | None,
        Field(description="Maximum number of requests that wait (`wait_seconds`) at once; null for no limit."),
    ]
    quotas: Annotated[
        Sequence[OwnQuota] | None,
        Field(description="The quotas that limit the caller; null if the deployment has no quotas."),
    ]
    logs: Annotated[
        LogLocation | None, Field(description="Where the logs of the workers are; null if it is not known.")
    ]


GET = Operation(
    "getSettings",
    "GET /v1/settings",
    "Get the settings of the deployment",
    Returns(DeploymentSettings, "The settings."),
    description="What the deployment allows, how long it keeps tasks, and who the caller is. Values of secrets and "
    "identities of other callers are not included.",
)
