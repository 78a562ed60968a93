"""Python client of a duetime task scheduler.

```python
from duetime_client import Client

with Client("https://example.org") as client:
    task = client.create_task("report", payload={"month": "2026-11"}, delay_seconds=60)
```
"""

from duetime_client.authentication import BearerToken
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
    UnexpectedAnswer,
    Unreachable,
)
from duetime_client.fields import (
    HttpTarget,
    NewTask,
    Priority,
    RetryPolicy,
    TaskFields,
    TaskFilter,
    TimeWithoutZone,
)
from duetime_client.retries import Retries
from duetime_client.task import Attempt, Failure, Lease, Progress, Task

__all__ = [
    "AddressInvalid",
    "ApiError",
    "Attempt",
    "BearerToken",
    "Client",
    "ClientError",
    "Conflict",
    "CredentialsMissing",
    "Failure",
    "Forbidden",
    "HeaderInvalid",
    "HttpTarget",
    "InvalidField",
    "InvalidRequest",
    "Lease",
    "NewTask",
    "PreconditionFailed",
    "Priority",
    "Progress",
    "Retries",
    "RetryPolicy",
    "Task",
    "TaskFields",
    "TaskFilter",
    "TaskNotFound",
    "Throttled",
    "TimeWithoutZone",
    "UnexpectedAnswer",
    "Unreachable",
]
