"""The operations of pull workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.contract.http.operation import Operation, Returns
from duetime.contract.pull import leases
from duetime.contract.tasks.report_bodies import EmptyRequest
from duetime.domain import errors

if TYPE_CHECKING:
    from duetime.contract.tasks.bodies import Body

_OF_A_LEASE = (errors.TypeNotPulled, errors.FenceMismatch)
_ENDING = (*_OF_A_LEASE, errors.NotifiedOtherwise)

LEASE = Operation(
    "acquireLeases",
    "POST /v1/leases",
    "Lease due tasks of pulled types",
    Returns(leases.AcquiredLeases, "The leases."),
    description="For workers anywhere. Tasks of all owners are handed out, none before its time, to callers that "
    "the deployment's settings name for the types. With `wait_seconds`, the answer comes with the first task, "
    "or at once if as many requests wait already as the settings let. An "
    "answer that is lost has leased its tasks all the same: they come back after the lease, at the cost of an "
    "attempt.",
    body=leases.LeaseRequest,
    errors=(errors.TypeNotPulled,),
)


def _report(
    id_: str,
    name: str,
    summary: str,
    description: str = "",
    body: type[Body] = EmptyRequest,
    refusals: tuple[type[Exception], ...] = _ENDING,
) -> Operation:
    """What a worker says of a lease."""
    return Operation(
        id_,
        f"POST /v1/leases/{{lease_id}}/{name}",
        summary,
        Returns(leases.LeaseStatus, "The state of the task."),
        description=description,
        body=body,
        errors=refusals,
    )


HEARTBEAT = _report(
    "renewLease",
    "heartbeat",
    "Renew a lease",
    "By its length, but never beyond the task's `timeout_seconds` after the attempt's start. `requested_action` is "
    "what the worker should heed.",
    leases.LeaseHeartbeat,
    (*_OF_A_LEASE, errors.AttemptOverdue, errors.LockLost),
)
COMPLETE = _report(
    "completeLease",
    "complete",
    "Tell that a leased task is done",
    "Telling the same again changes nothing and answers the same. It is taken even after the end of the lease, as long "
    "as nobody else has the task.",
    leases.LeaseComplete,
)
FAIL = _report(
    "failLease",
    "fail",
    "Tell that a leased task has failed",
    "It is retried by its policy, unless the failure is not `retriable`.",
    leases.LeaseFail,
)
RELEASE = _report(
    "releaseLease",
    "release",
    "Give a leased task back at once",
    "It counts as no attempt, and any worker may lease it.",
)
PAUSE = _report(
    "acknowledgeLeasePause",
    "pause",
    "Leave a task that its user wants paused",
    body=leases.LeasePause,
    refusals=(*_ENDING, errors.StateConflict),
)
CANCEL = _report(
    "acknowledgeLeaseCancel",
    "cancel",
    "Leave a task that its user wants cancelled",
    refusals=(*_ENDING, errors.StateConflict),
)
