"""What each operation takes and answers: the part of the OpenAPI document that no model tells."""

from __future__ import annotations

from duetime.contract.bulk.bodies import FILTER_ACTION_OPERATIONS
from duetime.contract.bulk.operations import BULK_OPERATIONS
from duetime.contract.http import routes
from duetime.contract.http.operation import (
    CACHED,
    ETAG,
    EVERYWHERE,
    IF_MATCH,
    IF_NONE_MATCH,
    KEY,
    ONE_CHANGED,
    OWNED,
    OWNER,
    READ_BODY,
    Operation,
)
from duetime.contract.locks import LOCK_OPERATIONS
from duetime.contract.pull.leases import LEASE_OPERATIONS
from duetime.contract.schedules.operations import SCHEDULE_OPERATIONS
from duetime.contract.switches import SWITCH_OPERATIONS
from duetime.contract.tasks import bodies, queries, responses
from duetime.contract.tasks.dead_letters import DEAD_LETTER_OPERATIONS
from duetime.contract.tasks.operations import ACTIONS
from duetime.contract.topologies.operations import TOPOLOGY_OPERATIONS
from duetime.domain import errors
from duetime.domain.limits import MAX_BATCH

OPERATIONS = (
    Operation(
        id="createTask",
        method="POST",
        path=routes.TASKS,
        summary="Create a task",
        description="Once it is answered, the task is durable. A due time in the past is accepted: it runs now. "
        "With `wait`, the answer comes with the outcome, or at the limit.",
        status=201,
        query=queries.CreationQuery,
        accepted="The task is durable, but has no outcome yet.",
        body=bodies.TaskCreate,
        answer=responses.TaskResponse,
        answer_description="The task.",
        answer_headers={**ETAG, "Location": "Path of the task."},
        headers=(KEY, OWNER),
        refusals=(*OWNED, *READ_BODY, errors.KeyReused),
    ),
    Operation(
        id="createTasks",
        method="POST",
        path=routes.BATCH,
        summary="Create many tasks",
        description=f"Up to {MAX_BATCH} at once, each with its own result: one that is refused stops no other. "
        "The idempotency key holds for each task together with its place in the list.",
        body=bodies.TaskBatch,
        answer=responses.BatchResponse,
        answer_description="What became of each task, in the order they were given.",
        headers=(KEY, OWNER),
        refusals=(*OWNED, *READ_BODY),
    ),
    Operation(
        id="listTasks",
        method="GET",
        path=routes.TASKS,
        summary="List one's tasks",
        description="In order of their due times. A page may be short, or empty, and still name a next one.",
        answer=responses.PageResponse,
        answer_description="A page of the list.",
        headers=(OWNER,),
        query=queries.TaskListQuery,
        refusals=OWNED,
    ),
    Operation(
        id="getTask",
        method="GET",
        path=routes.TASK,
        summary="Read a task",
        answer=responses.TaskResponse,
        answer_description="The task.",
        answer_headers=CACHED,
        headers=(IF_NONE_MATCH, OWNER),
        has_not_modified=True,
        refusals=(*OWNED, errors.TaskNotFound),
    ),
    Operation(
        id="changeTask",
        method="PATCH",
        path=routes.TASK,
        summary="Change a task that has not started",
        body=bodies.TaskPatch,
        answer=responses.TaskResponse,
        answer_description="The task after the change.",
        answer_headers=ETAG,
        headers=(IF_MATCH, OWNER),
        refusals=(*OWNED, *READ_BODY, *ONE_CHANGED),
    ),
    Operation(
        id="cancelTask",
        method="DELETE",
        path=routes.TASK,
        summary="Cancel a task that has not started, or ask a running one to stop",
        description="Cancelling it again changes nothing and answers the same. A task that runs is a conflict, unless "
        "`force` is true: then it is asked to stop, which it does when it can.",
        query=queries.CancelQuery,
        accepted="The running task is asked to stop.",
        answer=responses.TaskResponse,
        answer_description="The cancelled task.",
        answer_headers=ETAG,
        headers=(IF_MATCH, OWNER),
        refusals=(*OWNED, *ONE_CHANGED),
    ),
    *ACTIONS,
    *FILTER_ACTION_OPERATIONS,
    *BULK_OPERATIONS,
    *DEAD_LETTER_OPERATIONS,
    *LOCK_OPERATIONS,
    *LEASE_OPERATIONS,
    *SWITCH_OPERATIONS,
    *SCHEDULE_OPERATIONS,
    *TOPOLOGY_OPERATIONS,
    Operation(
        id="getHealth",
        method="GET",
        path=routes.HEALTH,
        summary="Ask whether the API answers",
        tag="service",
        answer=responses.HealthResponse,
        answer_description="It does.",
        refusals=EVERYWHERE,
    ),
    Operation(
        id="getOpenApi",
        method="GET",
        path=routes.OPENAPI,
        summary="Describe the API",
        tag="service",
        answer=dict,
        answer_schema={"type": "object"},
        answer_description="This document.",
        refusals=EVERYWHERE,
    ),
)
