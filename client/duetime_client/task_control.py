"""What the API offers for a task that exists already: to its user, and to whoever works on it."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import quote

from duetime_client.responses import attempts_of, reply_of, task_of

if TYPE_CHECKING:
    from duetime_client.task import Attempt, TargetReply, Task
    from duetime_client.transport import Transport

TASKS = "/v1/tasks"


class TaskControl:
    """The part of the client that steers tasks."""

    _transport: Transport

    def pause_task(self, task_id: str) -> Task:
        """Hold a task; one that runs is asked to pause, which it does when it can."""
        return self._act(task_id, "pause")

    def resume_task(self, task_id: str) -> Task:
        """Let a paused task go on: at its due time if that is still ahead, else now."""
        return self._act(task_id, "resume")

    def run_task(self, task_id: str) -> Task:
        """Have a task that has not started run now."""
        return self._act(task_id, "run")

    def retry_task(self, task_id: str) -> Task:
        """Have a failed task tried again from its first attempt on."""
        return self._act(task_id, "retry")

    def roll_back_task(self, task_id: str) -> Task:
        """Have an ended task undone by its target."""
        return self._act(task_id, "rollback")

    def list_attempts(self, task_id: str) -> list[Attempt]:
        """The attempts of a task that have ended, oldest first."""
        return attempts_of(self._transport.request("GET", f"{path_of(task_id)}/attempts"))

    def ask_target(self, task_id: str, query: str) -> TargetReply:
        """Ask the endpoint of a task for its `status`, `progress` or `summary`, if it offers that."""
        response = self._transport.request("GET", f"{path_of(task_id)}/target", query=[("action", query)])
        return reply_of(response)

    def notify_success(self, task_id: str, fence: int, result: object = None) -> Task:
        """Tell that an attempt whose target had only accepted the work has succeeded."""
        return self._tell(task_id, "notify", {"fence": fence, "outcome": "succeeded", "result": result})

    def notify_failure(self, task_id: str, fence: int, kind: str, message: str = "", *, retriable: bool = True) -> Task:
        """Tell that an attempt whose target had only accepted the work has failed, and whether another might help."""
        error = {"class": kind, "message": message}
        body = {"fence": fence, "outcome": "failed", "error": error, "retriable": retriable}
        return self._tell(task_id, "notify", body)

    def send_heartbeat(self, task_id: str, fence: int) -> Task:
        """Say that an attempt is alive; `asked` of the answer is what it should heed."""
        return self._tell(task_id, "heartbeat", {"fence": fence})

    def tell_progress(self, task_id: str, fence: int, percent: int, message: str = "") -> Task:
        """Tell how far an attempt has come; a sign of life as well."""
        return self._tell(task_id, "progress", {"fence": fence, "percent": percent, "message": message})

    def _act(self, task_id: str, action: str) -> Task:
        return task_of(self._transport.request("POST", f"{path_of(task_id)}/{action}"))

    def _tell(self, task_id: str, what: str, body: dict[str, object]) -> Task:
        # Under its fence, the same word twice is one word: it may be sent again.
        return task_of(self._transport.request("POST", f"{path_of(task_id)}/{what}", body=body, repeatable=True))


def path_of(task_id: str) -> str:
    """The address of a task; whatever the id holds stays one segment of it."""
    return f"{TASKS}/{quote(task_id, safe='', errors='replace')}"
