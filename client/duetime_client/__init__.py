"""Python client of a duetime task scheduler.

```python
from duetime_client import Client

with Client("https://example.org") as client:
    task = client.tasks.create("report", payload={"month": "2026-11"}, delay_seconds=60)
```
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duetime_client.bearer_token import BearerToken
    from duetime_client.bulk_operations import BulkOperation
    from duetime_client.client import AsyncClient, Client
    from duetime_client.errors import (
        AddressInvalid,
        ApiError,
        ClientError,
        Conflict,
        CredentialsMissing,
        DecryptionFailed,
        Forbidden,
        HeaderInvalid,
        InvalidField,
        InvalidRequest,
        NotFound,
        NotJson,
        PreconditionFailed,
        RateLimited,
        ServerError,
        Unauthenticated,
        UnexpectedResponse,
        Unreachable,
        WaitTimeout,
    )
    from duetime_client.explanations import Gate, ScheduleExplanation, StartPreview, TaskExplanation
    from duetime_client.filter_actions import FilterActionResult
    from duetime_client.groups import Group, GroupCompletion
    from duetime_client.leases import LeasedTask, LeaseState
    from duetime_client.literals import ScheduleState, TaskState
    from duetime_client.locks import Lock, LockHolder, LockWaiter
    from duetime_client.ordered_keys import OrderedKeyLine, OrderedTask
    from duetime_client.rates import Rate, RateLimit, RateWaiter
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
    from duetime_client.signals import SentSignal
    from duetime_client.summary import Summary, TypeSummary
    from duetime_client.switches import Circuit, StopSwitches, Switch
    from duetime_client.task import Attempt, Failure, Lease, Progress, TargetReply, Task, TaskStep
    from duetime_client.task_definitions import PayloadInvalid, ResultInvalid, TaskType
    from duetime_client.task_request_fields import (
        ApprovalTarget,
        AwsTarget,
        BulkFilter,
        BulkOptions,
        DeadLetterFilter,
        EventTarget,
        HttpAuth,
        HttpContent,
        HttpResponseOptions,
        HttpTarget,
        NewTask,
        Priority,
        PullTarget,
        TaskFields,
        TaskFilter,
        TaskOptions,
        TimeWithoutZone,
    )
    from duetime_client.task_types import TypeInfo
    from duetime_client.topology_files import TopologyInvalid, read_topology, validate_topology
    from duetime_client.unique_keys import HeldUniqueKey, UniqueKeyHolder
    from duetime_common.option_fields import LockSpec, NotifyOn, OrderedKey, RateSpec, RetryPolicy, UniqueKey
    from duetime_common.payload_codecs import Binary

__all__ = [
    "AddressInvalid",
    "ApiError",
    "ApprovalTarget",
    "AsyncClient",
    "Attempt",
    "AwsTarget",
    "BearerToken",
    "Binary",
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
    "DecryptionFailed",
    "EventTarget",
    "Expectation",
    "Failure",
    "FilterActionResult",
    "Forbidden",
    "Gate",
    "Group",
    "GroupCompletion",
    "HeaderInvalid",
    "HeldUniqueKey",
    "HttpAuth",
    "HttpContent",
    "HttpResponseOptions",
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
    "NotFound",
    "NotJson",
    "NotifyOn",
    "Occurrence",
    "OrderedKey",
    "OrderedKeyLine",
    "OrderedTask",
    "PayloadInvalid",
    "PreconditionFailed",
    "Priority",
    "Progress",
    "PullTarget",
    "Rate",
    "RateLimit",
    "RateLimited",
    "RateSpec",
    "RateWaiter",
    "ResultInvalid",
    "Retries",
    "RetryPolicy",
    "Schedule",
    "ScheduleExplanation",
    "ScheduleFields",
    "ScheduleState",
    "SentSignal",
    "ServerError",
    "SkippedRun",
    "StartPreview",
    "StopSwitches",
    "Summary",
    "Switch",
    "TargetReply",
    "Task",
    "TaskExplanation",
    "TaskFields",
    "TaskFilter",
    "TaskOptions",
    "TaskState",
    "TaskStep",
    "TaskType",
    "TimeWithoutZone",
    "TimingFields",
    "TopologyInvalid",
    "TypeInfo",
    "TypeSummary",
    "Unauthenticated",
    "UnexpectedResponse",
    "UniqueKey",
    "UniqueKeyHolder",
    "Unreachable",
    "WaitTimeout",
    "read_topology",
    "validate_topology",
]

_MODULES = {
    "AddressInvalid": "errors",
    "ApiError": "errors",
    "AsyncClient": "client",
    "Attempt": "task",
    "ApprovalTarget": "task_request_fields",
    "EventTarget": "task_request_fields",
    "SentSignal": "signals",
    "AwsTarget": "task_request_fields",
    "BearerToken": "bearer_token",
    "Binary": "uploads",
    "BulkFilter": "task_request_fields",
    "BulkOperation": "bulk_operations",
    "BulkOptions": "task_request_fields",
    "Calendar": "schedule_models",
    "CalendarFields": "schedule_models",
    "Circuit": "switches",
    "Client": "client",
    "ClientError": "errors",
    "Conflict": "errors",
    "CredentialsMissing": "errors",
    "DeadLetterFilter": "task_request_fields",
    "DecryptionFailed": "errors",
    "Expectation": "schedule_models",
    "Failure": "task",
    "FilterActionResult": "filter_actions",
    "Forbidden": "errors",
    "Gate": "explanations",
    "Group": "groups",
    "GroupCompletion": "groups",
    "HeaderInvalid": "errors",
    "HttpAuth": "task_request_fields",
    "HttpContent": "task_request_fields",
    "HttpResponseOptions": "task_request_fields",
    "HttpTarget": "task_request_fields",
    "InvalidField": "errors",
    "InvalidRequest": "errors",
    "Lease": "task",
    "LeaseState": "leases",
    "LeasedTask": "leases",
    "Lock": "locks",
    "LockHolder": "locks",
    "LockSpec": "task_request_fields",
    "RateSpec": "task_request_fields",
    "LockWaiter": "locks",
    "Rate": "rates",
    "RateLimit": "rates",
    "RateWaiter": "rates",
    "HeldUniqueKey": "unique_keys",
    "UniqueKeyHolder": "unique_keys",
    "OrderedKeyLine": "ordered_keys",
    "OrderedTask": "ordered_keys",
    "StartPreview": "explanations",
    "NewTask": "task_request_fields",
    "NotifyOn": "task_request_fields",
    "OrderedKey": "task_request_fields",
    "Occurrence": "schedule_models",
    "PreconditionFailed": "errors",
    "Priority": "task_request_fields",
    "Progress": "task",
    "PullTarget": "task_request_fields",
    "Retries": "retries",
    "RetryPolicy": "task_request_fields",
    "Schedule": "schedule_models",
    "ServerError": "errors",
    "Unauthenticated": "errors",
    "ScheduleExplanation": "explanations",
    "ScheduleFields": "schedule_models",
    "ScheduleState": "literals",
    "SkippedRun": "schedule_models",
    "StopSwitches": "switches",
    "Summary": "summary",
    "Switch": "switches",
    "TargetReply": "task",
    "Task": "task",
    "TaskExplanation": "explanations",
    "TaskFields": "task_request_fields",
    "TaskFilter": "task_request_fields",
    "TaskOptions": "task_request_fields",
    "TaskType": "task_definitions",
    "PayloadInvalid": "task_definitions",
    "ResultInvalid": "task_definitions",
    "TaskState": "literals",
    "TaskStep": "task",
    "NotFound": "errors",
    "NotJson": "errors",
    "RateLimited": "errors",
    "TimeWithoutZone": "task_request_fields",
    "TimingFields": "schedule_models",
    "TopologyInvalid": "topology_files",
    "TypeInfo": "task_types",
    "TypeSummary": "summary",
    "UnexpectedResponse": "errors",
    "UniqueKey": "task_request_fields",
    "Unreachable": "errors",
    "WaitTimeout": "errors",
    "read_topology": "topology_files",
    "validate_topology": "topology_files",
}
"""Maps each public name to the module that defines it. Modules are imported on first use, so that the command starts
fast."""

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import a name on first use."""
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        found = globals()[name] = getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
        return found
