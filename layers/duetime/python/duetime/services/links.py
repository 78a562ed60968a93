"""Creates, lists and deletes links to tasks, and processes requests made with links."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING

from duetime.domain.errors import (
    FenceMismatch,
    LinkEnded,
    LinkNotFound,
    LinksFull,
    NotifiedOtherwise,
    TaskNotFound,
    Unavailable,
    VersionMismatch,
)
from duetime.domain.limits import MAX_LINKS
from duetime.domain.links import (
    ID_RANDOM_BITS,
    SECRET_BITS,
    Link,
    LinkAction,
    check_task,
    digest_of,
    new_id,
    place_in,
    token_of,
)
from duetime.domain.tasks.action_history import Attribution
from duetime.domain.tasks.attempt_results import Succeeded, failure
from duetime.services.tasks.approvals import Decision
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from duetime.domain.callers import Caller
    from duetime.domain.ids import TaskId
    from duetime.domain.links import LinkUse, NewLink
    from duetime.domain.tasks.attempt_results import Ending
    from duetime.domain.tasks.task import Task
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import LinkStore
    from duetime.services.tasks.approvals import Approvals
    from duetime.services.tasks.attempt_reports import AttemptReports
    from duetime.services.tasks.read import TaskReader

_TRIES = 5
FAILED_BY_LINK = "ReportedByLink"
"""Error type of an attempt that the holder of a link has reported as failed."""


@frozen
class TaskLinks:
    """Creates, lists and deletes the links of an owner's tasks."""

    store: LinkStore
    task_reader: TaskReader
    runtime: Runtime

    def create(self, caller: Caller, task_id: TaskId, wanted: NewLink) -> tuple[Link, str]:
        """Create a link.

        Returns:
            The link and its token. The token is not stored and cannot be read again.

        Raises:
            TaskNotFound: the task does not exist, or belongs to another owner.
            StateConflict: the task cannot have this kind of link; see `duetime.domain.links.check_task`.
            LinksFull: the task has too many links.
        """
        task = self.task_reader.record(caller.owner, task_id)
        check_task(task, wanted.actions)
        if len(self.store.list_of(task_id)) >= MAX_LINKS:
            raise LinksFull(MAX_LINKS)
        now, random = self.runtime.now(), self.runtime.random_source
        id_ = new_id(now, random.bits(ID_RANDOM_BITS))
        token = token_of(task_id, id_, random.bits(SECRET_BITS))
        reports = not {LinkAction.COMPLETE, LinkAction.FAIL}.isdisjoint(wanted.actions)
        link = Link(
            task_id=task_id,
            id=id_,
            owner=task.owner,
            actions=wanted.actions,
            digest=digest_of(token),
            created_at=now,
            created_by=caller.actor or caller.owner,
            expires_at=now + wanted.life,
            takes_payload=wanted.takes_payload,
            message=wanted.message,
            reopened_at=task.reopened_at or 0,
            fence=task.fence if reports else 0,
        )
        self.store.put(link)
        return link, token

    def list(self, owner: str, task_id: TaskId) -> tuple[Task, Sequence[Link]]:
        """A task and its links, in order of creation.

        Raises:
            TaskNotFound: the task does not exist, or belongs to another owner.
        """
        return self.task_reader.record(owner, task_id), self.store.list_of(task_id)

    def delete(self, owner: str, task_id: TaskId, id_: str) -> None:
        """Delete a link, so that requests with it are rejected from now on.

        Raises:
            TaskNotFound: the task does not exist, or belongs to another owner.
            LinkNotFound: the task has no such link.
        """
        self.task_reader.record(owner, task_id)
        if self.store.read(task_id, id_) is None:
            raise LinkNotFound
        self.store.delete(task_id, id_)


@frozen
class LinkHolders:
    """Processes the requests of a link's holder, who can affect only the link's task.

    Attributes:
        approvals: returns the service that decides approvals, which few links need.
        reports: returns the service that ends attempts.
        admit: admits a request, which counts as a read by the link's owner.
    """

    store: LinkStore
    task_reader: TaskReader
    runtime: Runtime
    approvals: Callable[[], Approvals]
    reports: Callable[[], AttemptReports]
    admit: Callable[[str], None]

    def find(self, token: str) -> Link | None:
        """The link with this token, even if it has ended; `None` if no link has the token."""
        place = place_in(token)
        link = None if place is None else self.store.read(*place)
        return link if link is not None and link.accepts(token) else None

    def read(self, token: str) -> tuple[Link, Task]:
        """Return a link with its task; the link must not have ended, but may have been used.

        Raises:
            LinkNotFound: the link does not exist, or its task was removed.
            LinkEnded: the link has expired, or belongs to an earlier attempt or run.
            QuotaExceeded: the link's owner has used up a quota.
        """
        link = self.find(token)
        if link is None:
            raise LinkNotFound
        self.admit(link.owner)
        try:
            task = self.task_reader.record(link.owner, link.task_id)
        except TaskNotFound:
            raise LinkNotFound from None
        # A person who has used the link can see the resulting state of the task.
        if link.used_at is None or link.expires_at <= self.runtime.now():
            link.check(task, self.runtime.now())
        return link, task

    def use(self, token: str, use: LinkUse) -> tuple[Link, Task]:
        """Process a link holder's request exactly once.

        The decision or report is applied once: the write succeeds only while the task waits for a decision or report,
        in the run or attempt for which the link was created. The use is noted afterwards, so that a crash in between
        does not leave a link that is marked as used but had no effect.

        Returns:
            The used link, and the task after its use.

        Raises:
            LinkNotFound: as in `read`.
            LinkEnded: as in `read`, or the link has been used.
            FieldInvalid: the link does not permit the request.
            StateConflict: the task does not wait for a decision, or has a different decision.
            Unavailable: concurrent writes kept changing the task; send the request again.
        """
        for _ in range(_TRIES):
            link, task = self.read(token)
            action = link.chosen(use.action, with_payload=use.payload is not None)
            # A task that has changed since it was read may have been retried, which ends the link, so both are read
            # again.
            with suppress(VersionMismatch):
                task = self._done(link, task, action, use)
                used = replace(link, used_at=self.runtime.now(), used_for=action)
                self.store.note_use(used)
                return used, task
        raise Unavailable(f"the task {task.id} has too many concurrent writes")

    def _done(self, link: Link, task: Task, action: LinkAction, use: LinkUse) -> Task:
        payload = b"null" if use.payload is None else use.payload
        ending: Ending
        match action:
            case LinkAction.APPROVE | LinkAction.REJECT:
                decision = Decision(action is LinkAction.APPROVE, payload)
                by = Attribution(name=f"link {link.id}", reason=use.reason)
                return self.approvals().decide(link.owner, task.id, decision, task.version, by)
            case LinkAction.COMPLETE:
                ending = Succeeded(payload)
            case _:
                ending = failure(FAILED_BY_LINK, use.reason or "reported by the holder of a link", retriable=False)
        try:
            return self.reports().notify(link.owner, task.id, link.fence, ending)
        except (FenceMismatch, NotifiedOtherwise):
            raise LinkEnded("the attempt that it was created for has ended") from None
