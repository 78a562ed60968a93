"""Encodes tasks as responses."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal, cast

from duetime.contract.mapping import response_of
from duetime.contract.tasks.responses import (
    AfterOccurrenceResponse,
    ApprovalTargetResponse,
    AwsTargetResponse,
    BatchTargetResponse,
    CallbackTargetResponse,
    DebounceResponse,
    DefinitionRunResponse,
    EcsTargetResponse,
    EventBridgeTargetResponse,
    EventTargetResponse,
    GroupReferenceResponse,
    HandlerTargetResponse,
    HttpTargetResponse,
    JobResponse,
    JobTargetResponse,
    LambdaTargetResponse,
    LeaseResponse,
    NotifyOnResponse,
    OrderKeyResponse,
    PullTargetResponse,
    RetryResponse,
    ScheduleReferenceResponse,
    StepFunctionsTargetResponse,
    TaskDependenciesResponse,
    TaskErrorResponse,
    TaskLockResponse,
    TaskOptionsResponse,
    TaskProgressResponse,
    TaskRateResponse,
    TaskSummary,
    TopologyReferenceResponse,
    TopologyTargetResponse,
    UniqueResponse,
    WaitingForResponse,
)
from duetime.domain.tasks import targets, task_options
from duetime.domain.tasks.aws_jobs import job_page
from duetime.domain.tasks.costs import cost_of
from duetime.domain.tasks.states import LEASED, STARTABLE
from duetime.domain.tasks.targets import AwsService, HttpRequest, RequestBody, ResponseOptions
from duetime.domain.tasks.wait_reasons import wait_reason
from duetime.domain.times import to_iso

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from duetime.contract.tasks.responses import LambdaMode, TargetResponse
    from duetime.domain.tasks.dependencies import Dependency
    from duetime.domain.tasks.task import Content, NodeRef, ScheduleRef, Task
    from duetime.domain.times import Millis


_OFFERED: tuple[Literal["prepare", "clean", "rollback"], ...] = ("prepare", "clean", "rollback")
_ANSWERED: tuple[Literal["status", "progress", "summary"], ...] = ("status", "progress", "summary")


def entry(task: Task) -> TaskSummary:
    """A task in a list."""
    # The fields are written out for speed, because a page has a hundred entries, and because a task's `expires_at` is
    # its record's expiry.
    return TaskSummary(
        id=str(task.id),
        state=task.state,
        type=task.type,
        **options_response(task),
        target=target_response(task.target),
        unique=response_of(UniqueResponse, task.unique),
        debounce=response_of(DebounceResponse, task.debounce),
        order=response_of(OrderKeyResponse, task.order),
        due_at=to_iso(task.due_at),
        expires_at=instant(task.start_by),
        next_at=None if task.is_terminal else to_iso(task.next_at),
        created_at=to_iso(task.created_at),
        started_at=instant(task.started_at),
        finished_at=instant(task.finished_at),
        attempt=task.attempt,
        fence=task.fence,
        lease=_lease(task),
        awaiting_notification=task.awaiting_notification,
        job=None if task.job is None else JobResponse(arn=task.job, console_url=job_page(task.job)),
        requested_action=task.requested_action,
        waiting_for=_waiting_for(task),
        schedule=schedule_response(task.schedule_run),
        topology=topology_response(task.node_ref),
        parent_task_id=None if task.parent_task_id is None else task.parent_task_id.text,
        **_dependencies(task),
        progress=response_of(TaskProgressResponse, task.progress),
        error=response_of(TaskErrorResponse, task.error),
        lateness_ms=task.lateness,
        cost_dollars=cost_of(task),
        traceparent=task.traceparent,
        version=task.version,
    )


def _dependencies(task: Task) -> TaskDependenciesResponse:
    """The dependencies of a task; absent for most tasks, to save space."""
    if task.after is None:
        return {}
    return {"after": [_dependency(each) for each in task.after.on], "trigger_rule": task.after.rule}


def _dependency(dependency: Dependency) -> str | AfterOccurrenceResponse:
    task_id = None if dependency.task_id is None else dependency.task_id.text
    if dependency.occurrence is None:
        return task_id or ""
    occurrence = dependency.occurrence
    return AfterOccurrenceResponse(schedule=occurrence.schedule, occurrence=to_iso(occurrence.nominal), task_id=task_id)


def request_fields(target: targets.Target | None, options: task_options.TaskOptions) -> dict[str, Any]:
    """A task's target and options in the form of a request; fields without a value are omitted."""
    shown = {"target": None if target is None else target_response(target), **options_response(options)}
    fields: dict[str, Any] = json.loads(json_text(_without_nulls(shown)))
    return {**fields, "target": _without_nulls(fields["target"])} if "target" in fields else fields


def _without_nulls(value: Mapping[str, Any]) -> dict[str, Any]:
    return {name: each for name, each in value.items() if each is not None}


def task_text(task: Task) -> str:
    """A complete task as JSON text. Payload and result are already JSON, and are inserted unchanged."""
    # These fields are rarely needed, so lists and events omit them to stay small.
    group = None if task.group is None else GroupReferenceResponse(id=task.group)
    more = json_text({"group": group, "completes_group": task.completes, "kept_until": instant(task.expires_at)})
    return f"{_with_contents(task, ('payload', 'result'))[:-1]},{more[1:]}"


def page_text(tasks: Sequence[Task], expand: Collection[str], rest: Mapping[str, object]) -> str:
    """Encodes a page of tasks as JSON text.

    Args:
        tasks: the tasks, including the content to show.
        expand: the names of the content to show.
        rest: other fields of the page.
    """
    entries = ",".join(_with_contents(task, expand) if expand else json_text(entry(task)) for task in tasks)
    return f'{{"tasks":[{entries}],{json_text(rest)[1:]}'


def _with_contents(task: Task, names: Collection[str]) -> str:
    contents = {name: getattr(task, name) for name in ("payload", "result") if name in names}
    expired = json.dumps([name for name, content in contents.items() if _is_lacking(content)])
    shown = "".join(f',"{name}":{json_of(content)}' for name, content in contents.items())
    return f'{json_text(entry(task))[:-1]}{shown},"content_expired":{expired}}}'


def _is_lacking(content: Content | None) -> bool:
    return content is not None and content.data is None


def target_reply_text(status: int, body: bytes) -> str:
    """An endpoint's response as JSON text. The body is already JSON, and is inserted unchanged."""
    return f'{{"status":{status},"body":{body.decode()}}}'


def json_text(value: Mapping[str, object]) -> str:
    """Encodes a response as JSON text without spaces."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False)


def json_of(content: Content | None) -> str:
    """A payload or result as JSON text."""
    return "null" if content is None or content.data is None else content.data.decode()


def instant(at: Millis | None) -> str | None:
    """Formats an instant; returns `None` for `None`."""
    return None if at is None else to_iso(at)


def _lease(task: Task) -> LeaseResponse | None:
    """The lease of an attempt; a lease for follow-up work after the last attempt is not shown."""
    if task.state not in LEASED or task.lease_expires_at is None:
        return None
    return LeaseResponse(worker=task.lease_worker or "", expires_at=to_iso(task.lease_expires_at))


def _waiting_for(task: Task) -> WaitingForResponse | None:
    """Why the last check of a waiting task did not start an attempt."""
    if task.state not in STARTABLE or task.waiting_for is None:
        return None
    return WaitingForResponse(reason=wait_reason(task.waiting_for), text=task.waiting_for)


def target_response(target: targets.Target) -> TargetResponse:
    """The response for a target."""
    if isinstance(target, targets.AwsTarget):
        return _aws_target(target)
    if isinstance(target, targets.PullTarget):
        return PullTargetResponse(kind="pull")
    if isinstance(target, targets.TopologyTarget):
        return _topology_target(target.definition)
    if isinstance(target, targets.ApprovalTarget):
        return ApprovalTargetResponse(
            kind="approval", timeout_seconds=target.timeout_seconds, on_timeout=target.on_timeout.value
        )
    if isinstance(target, targets.EventTarget):
        return EventTargetResponse(
            kind="wait_for_event",
            event=target.event,
            key=target.key,
            timeout_seconds=target.timeout_seconds,
            lookback_seconds=target.lookback_seconds,
            when=target.when,
        )
    if isinstance(target, targets.HttpTarget):
        response = HttpTargetResponse(
            kind="http",
            url=target.url,
            phases=[phase for phase in _OFFERED if phase in target.phases],
            queries=[query for query in _ANSWERED if query in target.queries],
        )
        if target.batch is not None:
            response["batch"] = {
                "max_size": target.batch.max_size,
                "max_wait_seconds": target.batch.max_wait_seconds,
            }
        return cast("HttpTargetResponse", response | _request_fields(target.request))
    if isinstance(target, targets.CallbackTarget):
        return CallbackTargetResponse(kind="callback", url=target.url)
    return HandlerTargetResponse(kind="handler")


def _request_fields(request: HttpRequest) -> dict[str, Any]:
    """The fields of a target for a request; fields with default values are omitted."""
    auth, response = request.auth, request.response
    found: dict[str, Any] = {
        "method": request.method,
        "headers": dict(request.headers),
        "query": dict(request.query),
        "body": None if request.body is None else {request.body.kind.value: _written(request.body)},
        "success": list(request.success),
        "auth": auth and {"secret": auth.secret, "scheme": auth.scheme.value, "header": auth.header or None},
        "response": response != ResponseOptions()
        and {
            "keep": response.keep.value,
            "max_bytes": response.max_bytes,
            "when_larger": "truncate" if response.truncates else "fail",
        },
    }
    return {name: value for name, value in found.items() if value}


def _written(body: RequestBody) -> object:
    return json.loads(body.text) if body.kind.is_structured else body.text


def _topology_target(ref: targets.DefinitionRef | None) -> TopologyTargetResponse:
    if ref is None:
        return TopologyTargetResponse(kind="topology")
    return TopologyTargetResponse(kind="topology", definition=definition_run_response(ref))


def definition_run_response(ref: targets.DefinitionRef) -> DefinitionRunResponse:
    """The response for the definition of a topology."""
    return DefinitionRunResponse(name=ref.name, version=ref.version, parameters=json.loads(ref.parameters))


def _aws_target(target: targets.AwsTarget) -> TargetResponse:
    match target.service:
        case AwsService.LAMBDA:
            mode: LambdaMode = "durable" if target.is_job else "sync" if target.waits else "async"
            return LambdaTargetResponse(kind="lambda", arn=target.arn, mode=mode)
        case AwsService.EVENTBRIDGE:
            return EventBridgeTargetResponse(kind="eventbridge", arn=target.arn, detail_type=target.detail_type or None)
        case AwsService.SQS:
            return AwsTargetResponse(kind="sqs", arn=target.arn)
        case AwsService.SNS:
            return AwsTargetResponse(kind="sns", arn=target.arn)
        case AwsService.STEP_FUNCTIONS:
            return StepFunctionsTargetResponse(kind="step_functions", arn=target.arn, wait=target.is_job)
        case AwsService.ECS | AwsService.BATCH | AwsService.CODEBUILD | AwsService.GLUE as service:
            return _job_target(target, service)


def _job_target(
    target: targets.AwsTarget,
    service: Literal[AwsService.ECS, AwsService.BATCH, AwsService.CODEBUILD, AwsService.GLUE],
) -> TargetResponse:
    parameters = json.loads(target.parameters or "{}")
    match service:
        case AwsService.ECS:
            return EcsTargetResponse(
                kind="ecs", arn=target.arn, cluster=target.place, container=target.container, parameters=parameters
            )
        case AwsService.BATCH:
            return BatchTargetResponse(kind="batch", arn=target.arn, queue=target.place, parameters=parameters)
        case AwsService.CODEBUILD:
            return JobTargetResponse(kind="codebuild", arn=target.arn, parameters=parameters)
        case AwsService.GLUE:
            return JobTargetResponse(kind="glue", arn=target.arn, parameters=parameters)


def options_response(options: task_options.TaskOptions) -> TaskOptionsResponse:
    """The response for a task's options."""
    response = response_of(
        TaskOptionsResponse,
        options,
        name=options.name or None,
        retry=response_of(RetryResponse, options.retry),
        lock=response_of(TaskLockResponse, options.lock),
        locks=[_lock(lock) for lock in options.locks],
        rate=response_of(TaskRateResponse, options.rate),
        notify_on=response_of(NotifyOnResponse, options.notify_on),
        fair_key=options.fair_key or "",
    )
    if not options.locks:
        # These fields are omitted for most tasks, to save space in lists, events and callbacks.
        del response["locks"]
    if options.fair_key is None:
        del response["fair_key"]
    if options.fair_weight == 1:
        del response["fair_weight"]
    return response


def _lock(lock: task_options.LockSpec) -> TaskLockResponse:
    return response_of(TaskLockResponse, lock)


def schedule_response(schedule_ref: ScheduleRef | None) -> ScheduleReferenceResponse | None:
    """The response for the schedule that created a task."""
    if schedule_ref is None:
        return None
    return ScheduleReferenceResponse(
        name=schedule_ref.schedule,
        revision=schedule_ref.revision,
        scheduled_at=to_iso(schedule_ref.nominal),
        previous_at=None if schedule_ref.previous is None else to_iso(schedule_ref.previous),
        next_at=None if schedule_ref.next is None else to_iso(schedule_ref.next),
        cause=schedule_ref.cause,
    )


def topology_response(node_ref: NodeRef | None) -> TopologyReferenceResponse | None:
    """The response for the topology of a node."""
    if node_ref is None:
        return None
    return TopologyReferenceResponse(
        id=node_ref.topology.text, run=node_ref.run, node=node_ref.key, reason=node_ref.note or None
    )
