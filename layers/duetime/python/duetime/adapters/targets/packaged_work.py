"""Encodes a worker's request to a handler package's function, and the reply, as JSON that fits into one invocation.

Payloads, results and checkpoints are JSON texts within the request or reply. The function's role cannot access any
table or queue, so its handlers report through the attempts function.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from duetime.adapters.dynamodb.attribute_values import bytes_in, text_of
from duetime.adapters.targets.egress import EgressFailed, EgressUnavailable
from duetime.domain.ids import TaskId
from duetime.domain.tasks.attempt_results import Deferred, Failed, NotSent, Stopped, Succeeded, Yielded, failure
from duetime.domain.tasks.attempt_run import AttemptToken
from duetime.domain.tasks.states import State
from duetime.domain.tasks.targets import Phase
from duetime.domain.tasks.task import Cause, Content, ContentPlace, NodeRef, Progress, ScheduleRef, Task
from duetime.domain.times import SECOND
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from duetime.domain.tasks.attempt_results import TargetEnding
    from duetime.domain.tasks.type_defaults import HandlerDescription
    from duetime.domain.times import Millis
    from duetime.domain.type_settings import PackagedTypes
    from duetime.ports.runtime import Runtime
    from duetime.ports.targets import Work


MOST_REPLY_BYTES = 5_500_000
"""Maximum size of a reply in bytes; Lambda's limit is 6 MB (Source: AWS Lambda quotas)."""
_LARGE_PAYLOAD = 3_000_000
"""Size of a payload in bytes above which the event could be too large for a Lambda invocation."""
_FACTS = ("type", "attempt", "fence", "created_at", "due_at", "timeout_seconds", "traceparent")
"""Task fields that are sent to a package's function unchanged."""


@frozen
class PackagedTask(Task):
    """A task in the form that its package's function receives, with only the fields that its handler can read.

    Attributes:
        late: the task's lateness, from the task's record, in milliseconds.
    """

    late: Millis | None = None

    @property
    def lateness(self) -> Millis | None:
        """How long after the due time the first attempt started, in milliseconds."""
        return self.late


def packed_work(work: Work, lease: Millis) -> dict[str, Any]:
    """The event for one phase of an attempt."""
    task = work.task
    return {
        "attempt": AttemptToken.of(task).text,
        "phase": work.phase,
        "task": {
            **{name: getattr(task, name) for name in _FACTS},
            "late": task.lateness,
            "tags": dict(task.tags),
            "schedule": _packed_schedule(task.schedule_run),
            "node": _packed_node(task.node_ref),
        },
        **_packed_payload(work.payload),
        "checkpoint": _text(work.checkpoint),
        "inputs": _text(work.inputs),
        "requested_action": work.requested_action(),
        "may_save": work.save_checkpoint is not None,
        "deadline": work.deadline,
        "lease": lease,
        "seconds": work.seconds,
    }


def _packed_payload(payload: bytes) -> dict[str, str]:
    """The payload for an event. A large payload is compressed, which costs CPU but makes it fit into one invocation."""
    return {"packed_payload": text_of(payload)} if len(payload) > _LARGE_PAYLOAD else {"payload": payload.decode()}


def payload_in(event: Mapping[str, Any]) -> bytes:
    """The payload in an event, as JSON text in UTF-8."""
    packed = event.get("packed_payload")
    return str(event["payload"]).encode() if packed is None else bytes_in(packed)


def packed_ending(ending: TargetEnding) -> dict[str, Any]:
    """The reply that says how a phase ended."""
    match ending:
        case Succeeded(result):
            return {"ended": "succeeded", "result": result.decode()}
        case Yielded(checkpoint):
            return {"ended": "paused", "checkpoint": _text(checkpoint)}
        case Stopped():
            return {"ended": "cancelled"}
        case Deferred():
            return {"ended": "deferred"}
        case NotSent(reason):
            return {"ended": "not_started", "reason": reason}
        case Failed(error):
            return {
                "ended": "failed",
                "type": error.type,
                "message": error.message,
                "retriable": ending.retriable,
                "retry_in": ending.retry_in,
                "traceback": ending.traceback,
            }
    raise TypeError(ending)


def ending_in(reply: Mapping[str, Any]) -> TargetEnding:
    """How a phase ended, according to a reply.

    Raises:
        LookupError, TypeError, AttributeError: the reply does not come from a package's function.
    """
    match reply["ended"]:
        case "succeeded":
            return Succeeded(reply["result"].encode())
        case "paused":
            return Yielded(bytes_of(reply["checkpoint"]))
        case "cancelled":
            return Stopped()
        case "deferred":
            return Deferred()
        case "not_started":
            return NotSent(str(reply["reason"]))
        case "failed":
            error = failure(str(reply["type"]), str(reply["message"])).error
            return Failed(error, bool(reply["retriable"]), retry_in=reply["retry_in"], traceback=reply["traceback"])
        case _:
            raise LookupError(reply["ended"])


def task_in(event: Mapping[str, Any]) -> PackagedTask:
    """The task in an event.

    Raises:
        LookupError: the event does not name an attempt.
    """
    token = AttemptToken.parse(event["attempt"])
    if token is None:
        raise LookupError("attempt")
    facts = event["task"]
    schedule, node = facts["schedule"], facts["node"]
    return PackagedTask(
        **{name: facts[name] for name in _FACTS},
        id=token.task_id,
        # The event does not contain the owner; the attempts function reads the owner from the task's record.
        owner="",
        state=State.RUNNING,
        next_at=facts["due_at"],
        payload=Content(ContentPlace.RECORD, ""),
        late=facts["late"],
        tags=facts["tags"],
        schedule_ref=None if schedule is None else ScheduleRef(**{**schedule, "cause": Cause(schedule["cause"])}),
        node_ref=None if node is None else NodeRef(**{**node, "topology": TaskId(node["topology"])}),
    )


def _packed_schedule(run: ScheduleRef | None) -> dict[str, Any] | None:
    if run is None:
        return None
    names = ("schedule", "revision", "nominal", "cause", "previous", "next")
    return {name: getattr(run, name) for name in names}


def _packed_node(node: NodeRef | None) -> dict[str, Any] | None:
    return None if node is None else {"topology": node.topology.text, "run": node.run, "key": node.key}


def _text(data: bytes | None) -> str | None:
    return None if data is None else data.decode()


def bytes_of(text: str | None) -> bytes | None:
    """The JSON text in an event or a reply, as bytes."""
    return None if text is None else text.encode()


_TIMED_OUT: int = SECOND
"""A function that fails this close to the deadline is assumed to have timed out, in milliseconds."""


@frozen
class PackagedHandlers:
    """Calls handlers in handler packages.

    Attributes:
        types: the function for each task type.
        descriptions: the handlers' descriptions, by task type.
        invoke: invokes a function with an event, returns its response, and reports the version that ran, as
            `name:version`.
        lease: the duration of the worker's lease, in milliseconds.
    """

    types: PackagedTypes
    descriptions: Mapping[str, HandlerDescription]
    invoke: Callable[[str, bytes, Callable[[str], None]], bytes]
    runtime: Runtime
    lease: Millis

    def phases(self, task: Task) -> frozenset[Phase]:
        """The phases that the task's handler supports, which always include `run`."""
        known = self.descriptions.get(task.type)
        return frozenset({Phase.RUN}) if known is None else frozenset(map(Phase, known.phases)) | {Phase.RUN}

    def run(self, function: str, work: Work) -> TargetEnding:
        """Run one phase in the function of the task's package, and wait for its end. This method never raises."""
        event = json.dumps(packed_work(work, self.lease), ensure_ascii=False, separators=(",", ":")).encode()
        try:
            reply: dict[str, Any] = json.loads(self.invoke(function, event, work.executed_by))
            ending = ending_in(reply)
        except EgressUnavailable as error:
            return NotSent(f"the function of its handlers: {error}")
        except (EgressFailed, ValueError, LookupError, TypeError, AttributeError) as error:
            work.reload_checkpoint()
            return self._crashed(work, error)
        if isinstance(ending, NotSent):
            self.runtime.telemetry.count("handlers_unavailable")
            why = ending.reason
            self.runtime.telemetry.note("a package of handlers cannot be imported", function=function, error=why)
        if progress := reply.get("progress"):
            work.report(Progress(*progress))
        if reply.get("saved"):
            work.reload_checkpoint()
        return ending

    def _crashed(self, work: Work, error: Exception) -> TargetEnding:
        if self.runtime.now() >= work.deadline - _TIMED_OUT:
            return failure("Timeout", f"the handler did not end within {work.task.timeout_seconds} s")
        return failure("HandlerCrashed", f"the function of the handler ended without a result: {error}")
