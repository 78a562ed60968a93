"""Actions on an existing task, by its user or by the target that runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime_client.io_operations import Request
from duetime_client.request_limits import error_document, printable
from duetime_client.resource import Operation, Resource
from duetime_client.responses import reply_of, task_of
from duetime_client.session import guard, segment
from duetime_common.limits import MAX_PROGRESS_MESSAGE_LENGTH

if TYPE_CHECKING:
    from collections.abc import Sequence

    from duetime_client.io_operations import Steps
    from duetime_client.task import TargetReply, Task

TASKS = "/v1/tasks"


class TaskActions(Resource):
    """Actions on a task.

    The reason for an action is recorded, and `list_events` shows it. With `if_match`, an action takes place only if the
    task still has that `etag`.
    """

    @Operation
    def pause(self, task_id: str, *, reason: str = "", if_match: str | None = None) -> Request[Task]:
        """Pause a task; a running task is asked to pause, and pauses when it can."""
        return _action(task_id, "pause", reason, if_match)

    @Operation
    def resume(self, task_id: str, *, reason: str = "", if_match: str | None = None) -> Request[Task]:
        """Resume a paused task at its due time, or now if the due time has passed."""
        return _action(task_id, "resume", reason, if_match)

    @Operation
    def run(self, task_id: str, *, reason: str = "", if_match: str | None = None) -> Request[Task]:
        """Start a task now, before its due time."""
        return _action(task_id, "run", reason, if_match)

    @Operation
    def retry(self, task_id: str, *, reason: str = "", if_match: str | None = None) -> Request[Task]:
        """Run a failed task again, from its first attempt."""
        return _action(task_id, "retry", reason, if_match)

    @Operation
    def rollback(self, task_id: str, *, reason: str = "", if_match: str | None = None) -> Request[Task]:
        """Ask the target to undo a task that has ended."""
        return _action(task_id, "rollback", reason, if_match)

    @Operation
    def cancel(
        self,
        task_id: str,
        *,
        force: bool = False,
        include_children: bool = False,
        reason: str = "",
        if_match: str | None = None,
    ) -> Steps[Task]:
        """Cancel a task that has not started; with `force`, also ask a running task to stop.

        With `include_children`, also cancel all descendants of the task, even if the task has ended; `children` of the
        returned task counts them. For many descendants, several requests are sent.
        """
        flags = {"force": force, "include_children": include_children}
        body: dict[str, object] = {
            **{name: True for name, is_set in flags.items() if is_set},
            **(reason_body(reason) or {}),
        }
        path, headers = f"{path_of(task_id)}/cancel", guard(if_match)
        task = yield from self._session.send(Request("POST", path, task_of, body=body, headers=headers))
        done = task.children
        while done is not None and done.has_more:
            task = yield from self._session.send(Request("POST", path, task_of, body=body))
            done = task.children and task.children.model_copy(
                update={
                    "cancelled": done.cancelled + task.children.cancelled,
                    "stopping": max(done.stopping, task.children.stopping),
                }
            )
        return task.model_copy(update={"children": done})

    @Operation
    def approve(
        self, task_id: str, payload: object = None, *, reason: str = "", if_match: str | None = None
    ) -> Request[Task]:
        """Approve a task that waits for an approval; the task succeeds with the payload as its result."""
        return _signal(task_id, {"approve": True, "payload": payload}, reason, if_match)

    @Operation
    def reject(self, task_id: str, *, reason: str = "", if_match: str | None = None) -> Request[Task]:
        """Reject a task that waits for an approval; the task fails with the error `Rejected`."""
        return _signal(task_id, {"approve": False}, reason, if_match)

    @Operation
    def query(self, task_id: str, query: str) -> Request[TargetReply]:
        """Query the endpoint of a task for the `status`, `progress` or `summary`, if the endpoint supports queries."""
        # A query changes nothing, so it may be retried.
        return Request("POST", f"{path_of(task_id)}/query", reply_of, body={"action": query}, repeatable=True)

    @Operation
    def notify_success(self, task_id: str, fence: int, result: object = None) -> Request[Task]:
        """Report the success of an attempt whose target accepted the work and notifies later."""
        return _report(task_id, "notify", {"fence": fence, "outcome": "succeeded", "result": result})

    @Operation
    def notify_failure(
        self, task_id: str, fence: int, kind: str, message: str = "", *, retriable: bool = True
    ) -> Request[Task]:
        """Report the failure of an attempt whose target accepted the work, and whether another attempt may succeed."""
        error = error_document(kind, message)
        return _report(task_id, "notify", {"fence": fence, "outcome": "failed", "error": error, "retriable": retriable})

    @Operation
    def report_heartbeat(self, task_id: str, fence: int) -> Request[Task]:
        """Send a heartbeat for an attempt; the response's `requested_action` may ask for a pause or a cancellation."""
        return _report(task_id, "heartbeat", {"fence": fence})

    @Operation
    def report_progress(self, task_id: str, fence: int, percent: int, message: str = "") -> Request[Task]:
        """Report the progress of an attempt, which also counts as a heartbeat."""
        shown = printable(message, MAX_PROGRESS_MESSAGE_LENGTH)
        return _report(task_id, "progress", {"fence": fence, "percent": percent, "message": shown})


def path_of(task_id: str) -> str:
    """The path of a task; the id is escaped as one path segment."""
    return f"{TASKS}/{segment(task_id)}"


def reason_body(reason: str) -> dict[str, object] | None:
    """The body of an action; `None` without a reason."""
    return {"reason": reason} if reason else None


def action(
    path: str, reason: str, if_match: str | None, *, nodes: Sequence[str] = (), repeatable: bool = False
) -> Request[Task]:
    """The request for an action on a task or a topology; the request's path ends with the action's name."""
    body = {**(reason_body(reason) or {}), **({"nodes": list(nodes)} if nodes else {})}
    return Request("POST", path, task_of, body=body or None, headers=guard(if_match), repeatable=repeatable)


def _action(task_id: str, name: str, reason: str, if_match: str | None) -> Request[Task]:
    return action(f"{path_of(task_id)}/{name}", reason, if_match)


def _signal(task_id: str, body: dict[str, object], reason: str, if_match: str | None) -> Request[Task]:
    # Repeating the same decision is safe, except with `if_match`, because the version has changed.
    body |= reason_body(reason) or {}
    path, headers = f"{path_of(task_id)}/signal", guard(if_match)
    return Request("POST", path, task_of, body=body, headers=headers, repeatable=if_match is None)


def _report(task_id: str, what: str, body: dict[str, object]) -> Request[Task]:
    # Repeating a report with the same fence changes nothing, so it may be retried.
    return Request("POST", f"{path_of(task_id)}/{what}", task_of, body=body, repeatable=True)
