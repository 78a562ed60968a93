"""The REST API for deployment settings: callers' permissions, and retention times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from pydantic import Field
from typing_extensions import TypedDict  # required by pydantic before Python 3.12

from duetime.contract.http.operation import Operation, Returns
from duetime.domain.callers import Role
from duetime.domain.dispatch.enqueue_plan import Precision


class PulledType(TypedDict):
    """A type whose tasks are leased by pull workers."""

    type: str
    may_lease: Annotated[bool, Field(description="Whether the caller may lease tasks of this type.")]


class UsableSecret(TypedDict):
    """A secret that HTTP targets may use."""

    name: Annotated[str, Field(description="Name of the secret, as given in a target's `auth`.")]
    hosts: Annotated[Sequence[str], Field(description="Hosts that the secret may be sent to.")]


class TypeRetention(TypedDict):
    """How long ended tasks of certain types are kept."""

    types: Annotated[
        str, Field(description="A pattern of types; `*` stands for any characters, `?` for one character.")
    ]
    days: Annotated[float, Field(description="How long an ended task of these types can be read, in days.")]


class LogLocation(TypedDict):
    """Location of the workers' logs."""

    stack: Annotated[str, Field(description="Name of the CloudFormation stack, for `duetime logs --stack`.")]
    region: Annotated[str | None, Field(description="AWS region of the log group; null on the local stack.")]
    log_group: Annotated[
        str | None, Field(description="CloudWatch log group of the worker function; null on the local stack.")
    ]


class OwnQuota(TypedDict):
    """A quota of the caller."""

    quota: Annotated[str, Field(description="Name of the quota, such as `creates_per_second`.")]
    limit: Annotated[int, Field(description="The caller's limit.")]
    used: Annotated[
        float,
        Field(
            description="The caller's current use: the rate per second, averaged over five seconds, or the current "
            "number."
        ),
    ]


class DeploymentSettings(TypedDict):
    """The caller's permissions, and the deployment's configuration."""

    owner: Annotated[
        str, Field(description="The owner that the caller acts for. The default is the caller's identity.")
    ]
    owners: Annotated[Sequence[str], Field(description="All owners that the caller may act for, sorted by name.")]
    roles: Annotated[Sequence[Role], Field(description="The caller's roles, including implied roles.")]
    is_operator: Annotated[bool, Field(description="Whether the caller may use switches for all owners.")]
    authentication: Annotated[Literal["iam", "jwt", "none"], Field(description="How callers are authenticated.")]
    handler_types: Annotated[
        Sequence[str] | None, Field(description="Task types that have a Python handler; null if unknown.")
    ]
    pulled_types: Annotated[Sequence[PulledType], Field(description="Task types that pull workers lease.")]
    aws_targets: Annotated[
        Sequence[str], Field(description="Patterns of the ARNs of the AWS resources that tasks may call.")
    ]
    private_http_hosts: Annotated[Sequence[str], Field(description="Non-public hosts that HTTP targets may call.")]
    http_secrets: Annotated[
        Sequence[UsableSecret], Field(description="Secrets that the caller's HTTP targets may use.")
    ]
    retention_days: Annotated[float, Field(description="How long an ended task can be read, in days.")]
    retention_by_type: Annotated[
        Sequence[TypeRetention],
        Field(description="Other retention times for some types; the first matching pattern applies."),
    ]
    is_archived: Annotated[bool, Field(description="Whether ended tasks are archived in S3 when they are removed.")]
    is_counted: Annotated[bool, Field(description="Whether tasks are counted for `getSummary`.")]
    precision: Annotated[
        Precision, Field(description="Whether and how long workers hold tasks in order to start them on time.")
    ]
    shards: Annotated[
        int, Field(description="Number of partitions over which tasks that are due in the same minute are spread.")
    ]
    look_ahead_seconds: Annotated[
        float, Field(description="How many seconds before its due time a task is put on a queue.")
    ]
    requests_per_second: Annotated[
        int | None, Field(description="Steady-state request rate for all callers together; null if unknown.")
    ]
    waiting_requests: Annotated[
        int | None,
        Field(description="Maximum number of requests that wait (`wait_seconds`) at once; null for no limit."),
    ]
    quotas: Annotated[
        Sequence[OwnQuota] | None,
        Field(description="The quotas that limit the caller; null if the deployment has no quotas."),
    ]
    logs: Annotated[LogLocation | None, Field(description="Location of the workers' logs; null if unknown.")]


GET = Operation(
    "getSettings",
    "GET /v1/settings",
    "Get the deployment's settings",
    Returns(DeploymentSettings, "The settings."),
    description="Shows what the deployment allows, how long tasks are kept, and who the caller is. Secret values and "
    "identities of other callers are not included.",
)
