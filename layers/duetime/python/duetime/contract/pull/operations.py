"""The operations of pull workers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.contract.http.operation import Operation, Returns
from duetime.contract.pull import leases
from duetime.contract.tasks.operations import EmptyRequest
from duetime.domain import errors
from duetime.domain.callers import Role

if TYPE_CHECKING:
    from duetime.contract.http.request_model import Body

_OF_A_LEASE = (errors.TypeNotPulled, errors.FenceMismatch)
_ENDING = (*_OF_A_LEASE, errors.NotifiedOtherwise)

LEASE = Operation(
    "acquireLeases",
    "POST /v1/leases",
    "Acquire leases on due tasks",
    Returns(leases.AcquiredLeases, "The leases."),
    description="For pull workers anywhere. Returns due tasks of all owners to callers that the deployment's "
    "settings allow for these types. With `wait_seconds`, the response is sent as soon as there is a task, or at "
    "once if as many requests are waiting as the settings allow. If the response is lost, its tasks are leased all "
    "the same: they become available again when the lease ends. A lease is an attempt from its first heartbeat or "
    "report on; one that ends without any is none.",
    body=leases.LeaseRequest,
    role=Role.WORKER,
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
    """Declares a worker's report on a lease."""
    return Operation(
        id_,
        f"POST /v1/leases/{{lease_id}}/{name}",
        summary,
        Returns(leases.LeaseStatus, "The state of the task."),
        description=description,
        body=body,
        role=Role.WORKER,
        errors=refusals,
    )


HEARTBEAT = _report(
    "renewLease",
    "heartbeat",
    "Renew a lease",
    "Extends the lease by its length, but never beyond the task's `timeout_seconds` after the start of the attempt, "
    "and saves the checkpoint, if there is one. `requested_action` is what the worker should do: pause or cancel.",
    leases.LeaseHeartbeat,
    (*_OF_A_LEASE, errors.AttemptOverdue, errors.LockLost),
)
COMPLETE = _report(
    "completeLease",
    "complete",
    "Complete a leased task",
    "Reports that the work is done. Repeating the same report changes nothing and returns the same. It is accepted "
    "after the end of the lease, too, as long as no other worker has the task.",
    leases.LeaseComplete,
)
FAIL = _report(
    "failLease",
    "fail",
    "Fail a leased task",
    "Reports that the work has failed. The task is retried by its retry policy, unless `retriable` is false; "
    "`retry_in_seconds` replaces the policy's wait.",
    leases.LeaseFail,
)
LIST_STEPS = Operation(
    "listLeaseSteps",
    "GET /v1/leases/{lease_id}/steps",
    "List the steps of a leased task",
    Returns(leases.StoredSteps, "The steps that are done."),
    description="Steps whose results earlier attempts, or this one, have stored: the worker must not repeat them. The "
    "first attempt of a task, whose `fence` is 1, need not ask.",
    role=Role.WORKER,
    errors=_OF_A_LEASE,
)
PUT_STEP = Operation(
    "putLeaseStep",
    "PUT /v1/leases/{lease_id}/steps/{step}",
    "Store the result of a step",
    Returns(leases.StoredStep, "The stored step."),
    description="Stores the result of a step, unless one is stored: then that one is returned. Accepted after the end "
    "of the lease, too, as long as the task has not ended: the next attempt need not repeat the step.",
    body=leases.StepDone,
    role=Role.WORKER,
    errors=_OF_A_LEASE,
)
RELEASE = _report(
    "releaseLease",
    "release",
    "Give back a leased task",
    "Any worker may lease the task at once. It does not count as an attempt.",
)
PAUSE = _report(
    "acknowledgeLeasePause",
    "pause",
    "Acknowledge a request to pause",
    "The worker has stopped the work because `requested_action` was `pause`. It may leave a checkpoint.",
    body=leases.LeasePause,
    refusals=(*_ENDING, errors.StateConflict),
)
CANCEL = _report(
    "acknowledgeLeaseCancel",
    "cancel",
    "Acknowledge a request to cancel",
    "The worker has stopped the work because `requested_action` was `cancel`.",
    refusals=(*_ENDING, errors.StateConflict),
)
