"""Python client of a duetime task scheduler.

```python
from duetime_client import Client

with Client("https://example.org") as client:
    task = client.tasks.create("report", payload={"month": "2026-11"}, delay_seconds=60)
```
"""

from duetime_client.authentication import BearerToken
from duetime_client.bulk_operations import BulkOperation
from duetime_client.client import Client
from duetime_client.errors import (
    AddressInvalid,
    ApiError,
    ClientError,
    Conflict,
    CredentialsMissing,
    Forbidden,
    HeaderInvalid,
    InvalidField,
    InvalidRequest,
    PreconditionFailed,
    TaskNotFound,
    Throttled,
    UnexpectedResponse,
    Unreachable,
)
from duetime_client.explanations import Gate, ScheduleExplanation, TaskExplanation
from duetime_client.filter_actions import FilterActionResult
from duetime_client.leases import LeasedTask, LeaseState
from duetime_client.lock_admin import Lock, LockHolder, LockWaiter
from duetime_client.retries import Retries
from duetime_client.schedule_models import (
    Calendar,
    CalendarFields,
    Expectation,
    Occurrence,
    Schedule,
    ScheduleFields,
    SkippedRun,
    TimingFields,
)
from duetime_client.summary import Summary, TypeSummary
from duetime_client.switches import Circuit, StopSwitches, Switch
from duetime_client.task import Attempt, Failure, Lease, Progress, TargetReply, Task
from duetime_client.task_fields import (
    AwsTarget,
    BulkFilter,
    BulkOptions,
    DeadLetterFilter,
    HttpTarget,
    LockSpec,
    NewTask,
    NotifyOn,
    Priority,
    PullTarget,
    RetryPolicy,
    TaskFields,
    TaskFilter,
    TimeWithoutZone,
)
from duetime_client.topology_files import TopologyInvalid, read_topology, validate_topology

__all__ = [
    "AddressInvalid",
    "ApiError",
    "Attempt",
    "AwsTarget",
    "BearerToken",
    "BulkFilter",
    "BulkOperation",
    "BulkOptions",
    "Calendar",
    "CalendarFields",
    "Circuit",
    "Client",
    "ClientError",
    "Conflict",
    "CredentialsMissing",
    "DeadLetterFilter",
    "Expectation",
    "Failure",
    "FilterActionResult",
    "Forbidden",
    "Gate",
    "HeaderInvalid",
    "HttpTarget",
    "InvalidField",
    "InvalidRequest",
    "Lease",
    "LeaseState",
    "LeasedTask",
    "Lock",
    "LockHolder",
    "LockSpec",
    "LockWaiter",
    "NewTask",
    "NotifyOn",
    "Occurrence",
    "PreconditionFailed",
    "Priority",
    "Progress",
    "PullTarget",
    "Retries",
    "RetryPolicy",
    "Schedule",
    "ScheduleExplanation",
    "ScheduleFields",
    "SkippedRun",
    "StopSwitches",
    "Summary",
    "Switch",
    "TargetReply",
    "Task",
    "TaskExplanation",
    "TaskFields",
    "TaskFilter",
    "TaskNotFound",
    "Throttled",
    "TimeWithoutZone",
    "TimingFields",
    "TopologyInvalid",
    "TypeSummary",
    "UnexpectedResponse",
    "Unreachable",
    "read_topology",
    "validate_topology",
]
