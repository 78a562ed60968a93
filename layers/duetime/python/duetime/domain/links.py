"""Links, which are URLs that let somebody without credentials decide, report on or watch one task.

The URL is the credential: its token has a random secret, and only a digest of the token is stored. A link's permissions
are stored with the digest, so the link's holder cannot change them.
"""

from __future__ import annotations

import re
from enum import StrEnum
from hashlib import sha256
from hmac import compare_digest
from typing import TYPE_CHECKING

from duetime.domain.errors import FaultCode, FieldInvalid, LinkEnded, StateConflict
from duetime.domain.ids import TASK_ID_PATTERN, TaskId
from duetime.domain.operating_parameters import LINK_KEPT
from duetime.domain.tasks.approvals import is_awaited, is_being_checked
from duetime.domain.tasks.aws_jobs import is_job
from duetime.domain.tasks.states import State
from duetime.domain.tasks.targets import ApprovalTarget, TopologyTarget
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from duetime.domain.tasks.task import Task
    from duetime.domain.times import Millis

PREFIX = "dtl"
"""Prefix of every token, which lets secret scanners find tokens."""
SECRET_BITS, ID_RANDOM_BITS = 256, 32
ID_PATTERN = "[0-9a-f]{20}"
TOKEN_PATTERN = rf"{PREFIX}_({TASK_ID_PATTERN})_({ID_PATTERN})_[0-9a-f]{{64}}"
_TOKEN = re.compile(TOKEN_PATTERN)


class LinkAction(StrEnum):
    """An action that a link permits.

    Attributes:
        APPROVE: approve a task that waits for an approval.
        REJECT: reject a task that waits for an approval.
        COMPLETE: report the success of an attempt that waits for a report from outside.
        FAIL: report the failure of an attempt that waits for a report from outside.
        WATCH: see the task's state and progress, which every link permits.
    """

    APPROVE = "approve"
    REJECT = "reject"
    COMPLETE = "complete"
    FAIL = "fail"
    WATCH = "watch"


_KINDS = (
    frozenset({LinkAction.APPROVE, LinkAction.REJECT}),
    frozenset({LinkAction.COMPLETE, LinkAction.FAIL}),
    frozenset({LinkAction.WATCH}),
)
_WITH_PAYLOAD = frozenset({LinkAction.APPROVE, LinkAction.COMPLETE})


@frozen
class NewLink:
    """The permissions of a new link.

    Attributes:
        actions: the permitted actions, in the order of `LinkAction`, without duplicates.
        life: how long the link is valid, in milliseconds.
        takes_payload: whether the link's holder may send a payload, which becomes the task's result.
        message: message that is shown to the link's holder.
    """

    actions: tuple[LinkAction, ...]
    life: Millis
    takes_payload: bool = False
    message: str = ""

    def check(self) -> None:
        """Check that the fields are consistent.

        Raises:
            FieldInvalid: the actions belong to different kinds of tasks, or no action takes a payload.
        """
        if not any(kind.issuperset(self.actions) for kind in _KINDS):
            reason = "belong to different kinds of tasks: approve and reject, or complete and fail, or watch alone"
            raise FieldInvalid("actions", reason, FaultCode.CONFLICT)
        if self.takes_payload and _WITH_PAYLOAD.isdisjoint(self.actions):
            raise FieldInvalid("takes_payload", "is allowed with approve or complete only", FaultCode.CONFLICT)


@frozen
class Link:
    """A link, without its secret.

    Attributes:
        task_id: the task.
        id: public part of the token; ids sort by creation.
        owner: owner of the task.
        digest: SHA-256 of the token, in hexadecimal. The secret has 256 random bits, so no slow hash is needed.
        reopened_at: when the task was last retried before the link was created; a later retry ends the link.
        fence: the attempt that `COMPLETE` and `FAIL` report on; 0 for other links.
        used_at: when the link was used; `None` if not used.
        used_for: the action for which the link was used; `None` if not used.
    """

    task_id: TaskId
    id: str
    owner: str
    actions: tuple[LinkAction, ...]
    digest: str
    created_at: Millis
    created_by: str
    expires_at: Millis
    takes_payload: bool = False
    message: str = ""
    reopened_at: Millis = 0
    fence: int = 0
    used_at: Millis | None = None
    used_for: LinkAction | None = None

    @property
    def removable_at(self) -> Millis:
        """When the link may be removed.

        Ended links are kept for some time so that people can still see how they were used.
        """
        return self.expires_at + LINK_KEPT

    def accepts(self, token: str) -> bool:
        """Whether a token belongs to this link."""
        return compare_digest(self.digest, digest_of(token))

    def end(self, task: Task, now: Millis) -> str | None:
        """Why the link has ended, apart from being used; `None` if there is no such reason."""
        if self.expires_at <= now:
            return "it has expired"
        if (task.reopened_at or 0) != self.reopened_at:
            return "its task was retried since it was created"
        if self.fence and task.fence != self.fence:
            return "the attempt that it was created for has ended"
        return None

    def check(self, task: Task, now: Millis) -> None:
        """Check that the link is still valid.

        Raises:
            LinkEnded: the link has ended.
        """
        if (reason := self.end(task, now)) is not None:
            raise LinkEnded(reason)

    def chosen(self, action: LinkAction | None, *, with_payload: bool) -> LinkAction:
        """Determine the action for which a link is used.

        Args:
            action: the requested action; `None` for the link's only action.
            with_payload: whether the request has a payload.

        Raises:
            FieldInvalid: the link does not permit the action, or no action is requested and the link permits several
                actions.
            LinkEnded: the link has been used.
        """
        if self.actions == (LinkAction.WATCH,):
            raise FieldInvalid("action", "is not permitted: this link is for watching only", FaultCode.UNSUPPORTED)
        named = " or ".join(self.actions)
        if action is None and len(self.actions) > 1:
            raise FieldInvalid("action", f"is missing: {named}", FaultCode.REQUIRED)
        found = self.actions[0] if action is None else action
        if found not in self.actions:
            raise FieldInvalid("action", f"should be {named}", FaultCode.UNSUPPORTED)
        if with_payload and not (self.takes_payload and found in _WITH_PAYLOAD):
            raise FieldInvalid("payload", "is not accepted by this link", FaultCode.UNSUPPORTED)
        if self.used_at is not None:
            raise LinkEnded("it has been used")
        return found


@frozen
class LinkUse:
    """A request by a link's holder.

    Attributes:
        action: the requested action; `None` for the link's only action.
        payload: JSON text in UTF-8; `None` for no payload.
        reason: the reason that the holder gives.
    """

    action: LinkAction | None = None
    payload: bytes | None = None
    reason: str = ""


def check_task(task: Task, actions: tuple[LinkAction, ...]) -> None:
    """Check that a task can have a link for these actions now.

    Raises:
        StateConflict: the task has ended, has another kind of target, or has no attempt to report on.
    """
    if actions == (LinkAction.WATCH,):
        return
    if task.is_terminal:
        raise StateConflict(task, "given a link: it has ended")
    is_approval = isinstance(task.target, ApprovalTarget)
    if actions[0] in (LinkAction.APPROVE, LinkAction.REJECT):
        if not is_approval:
            raise StateConflict(task, "approved by a link: it has another target than approval")
        return
    if is_approval or isinstance(task.target, TopologyTarget) or is_job(task.target):
        raise StateConflict(task, "completed by a link: its target reports to duetime itself")
    if task.state is not State.RUNNING:
        raise StateConflict(task, "completed by a link: it has no running attempt")


def waits_for(task: Task, link: Link, now: Millis) -> bool:
    """Whether a task currently waits for an action that a link permits."""
    if link.used_at is not None or link.end(task, now) is not None:
        return False
    if link.fence:
        return task.state is State.RUNNING
    return link.actions != (LinkAction.WATCH,) and (is_awaited(task, now) or is_being_checked(task))


def new_id(now: Millis, random_bits: int) -> str:
    """The id of a new link."""
    return f"{now:012x}{random_bits:0{ID_RANDOM_BITS // 4}x}"


def token_of(task_id: TaskId, id_: str, secret: int) -> str:
    """The token of a link: `dtl_TASK_ID_SECRET`."""
    return f"{PREFIX}_{task_id}_{id_}_{secret:0{SECRET_BITS // 4}x}"


def place_in(token: str) -> tuple[TaskId, str] | None:
    """The task and the id in a token; `None` if the string cannot be a token."""
    found = _TOKEN.fullmatch(token)
    return None if found is None else (TaskId(found[1]), found[2])


def digest_of(token: str) -> str:
    """The digest under which a token is stored."""
    return sha256(token.encode("utf-8", "surrogatepass")).hexdigest()
