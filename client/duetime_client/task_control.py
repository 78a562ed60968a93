"""Operations on an existing task: for its user, and for the target that runs it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from duetime_client.lock_admin import read
from duetime_client.problems import document_of
from duetime_client.responses import attempts_of, reply_of, task_of
from duetime_client.task import TaskHistory
from duetime_client.transport import guard

if TYPE_CHECKING:
    from duetime_client.task import Attempt, TargetReply, Task
    from duetime_client.transport import Transport

TASKS = "/v1/tasks"


class TaskControl:
    """The client's methods that control tasks.

    The reason of an action is recorded: `list_task_events` shows it. With `if_match`, an action takes place only if the
    task still has that `etag`.
    """

    _transport: Transport

    def pause_task(self, task_id: str, *, reason: str = "", if_match: str | None = None) -> Task:
        """Pause a task; a running task is requested to pause, and does so when it can."""
        return self._act(task_id, "pause", reason, if_match)

    def resume_task(self, task_id: str, *, reason: str = "", if_match: str | None = None) -> Task:
        """Resume a paused task: at its due time, or now if that is past."""
        return self._act(task_id, "resume", reason, if_match)

    def run_task(self, task_id: str, *, reason: str = "", if_match: str | None = None) -> Task:
        """Start a task now, before its due time."""
        return self._act(task_id, "run", reason, if_match)

    def retry_task(self, task_id: str, *, reason: str = "", if_match: str | None = None) -> Task:
        """Run a failed task again, from its first attempt."""
        return self._act(task_id, "retry", reason, if_match)

    def rollback_task(self, task_id: str, *, reason: str = "", if_match: str | None = None) -> Task:
        """Have the target undo a task that has ended."""
        return self._act(task_id, "rollback", reason, if_match)

    def list_task_attempts(self, task_id: str) -> list[Attempt]:
        """The attempts of a task that have ended, oldest first."""
        return attempts_of(self._transport.request("GET", f"{path_of(task_id)}/attempts"))

    def list_task_events(self, task_id: str) -> TaskHistory:
        """The life of a task, oldest event first: what was done to it, by whom and why, its attempts and its end."""
        response = self._transport.request("GET", f"{path_of(task_id)}/events")
        return read(TaskHistory, response, document_of(response))

    def query_task(self, task_id: str, query: str) -> TargetReply:
        """Query the endpoint of a task for its `status`, `progress` or `summary`, if it supports that."""
        # A query changes nothing, so it may be retried.
        body = {"action": query}
        response = self._transport.request("POST", f"{path_of(task_id)}/query", body=body, repeatable=True)
        return reply_of(response)

    def notify_success(self, task_id: str, fence: int, result: object = None) -> Task:
        """Report the success of an attempt whose target accepted the work and notifies later."""
        return self._tell(task_id, "notify", {"fence": fence, "outcome": "succeeded", "result": result})

    def notify_failure(self, task_id: str, fence: int, kind: str, message: str = "", *, retriable: bool = True) -> Task:
        """Report the failure of an attempt whose target accepted the work, and whether another attempt may succeed."""
        error = {"type": kind, "message": message}
        body = {"fence": fence, "outcome": "failed", "error": error, "retriable": retriable}
        return self._tell(task_id, "notify", body)

    def report_heartbeat(self, task_id: str, fence: int) -> Task:
        """Send a heartbeat of an attempt; `asked` of the response is what was requested meanwhile."""
        return self._tell(task_id, "heartbeat", {"fence": fence})

    def report_progress(self, task_id: str, fence: int, percent: int, message: str = "") -> Task:
        """Report the progress of an attempt; this is a heartbeat, too."""
        return self._tell(task_id, "progress", {"fence": fence, "percent": percent, "message": message})

    def _act(self, task_id: str, action: str, reason: str, if_match: str | None) -> Task:
        path, headers = f"{path_of(task_id)}/{action}", guard(if_match)
        return task_of(self._transport.request("POST", path, body=reason_body(reason), headers=headers))

    def _tell(self, task_id: str, what: str, body: dict[str, object]) -> Task:
        # Repeating a report under one fence changes nothing, so it may be retried.
        return task_of(self._transport.request("POST", f"{path_of(task_id)}/{what}", body=body, repeatable=True))


def reason_body(reason: str) -> dict[str, object] | None:
    """The body of an action: none at all without a reason."""
    return {"reason": reason} if reason else None


def path_of(task_id: str) -> str:
    """The path of a task; the id is one segment of it, whatever characters it has."""
    return f"{TASKS}/{quote(task_id, safe='', errors='replace')}"
