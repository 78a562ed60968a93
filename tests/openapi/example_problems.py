"""Errors that no recorded request causes; their problems are created from the errors themselves."""

from __future__ import annotations

from typing import TYPE_CHECKING

from duetime.contract.http.request_errors import BodyTooLarge, CallerForbidden, CallerUnknown
from duetime.contract.tasks.fields import OWNER_RULE
from duetime.domain import errors
from duetime.domain.ids import TaskId
from duetime.domain.limits import MAX_BODY_BYTES
from duetime.domain.times import DAY
from duetime.domain.type_settings import RetentionPolicy
from tests.domain.factories import task

if TYPE_CHECKING:
    from collections.abc import Sequence

RARE: Sequence[Exception] = (
    RuntimeError("what nobody expected"),
    BodyTooLarge(MAX_BODY_BYTES),
    CallerForbidden(OWNER_RULE),
    CallerUnknown(),
    errors.AttemptOverdue(task()),
    errors.ContentExpired(TaskId.parse("01M7XZ8CGJ0013P2ZBN3YDT3DX"), "payload"),
    errors.LockLost(task()),
    errors.OperatorRequired(),
    errors.RoleRequired("writer"),
    errors.RegionNotActive("eu-west-1", is_open=True),
    errors.OwnerForbidden("billing"),
    errors.ApiKeysOff(),
    errors.LinksFull(50),
    errors.IntakeOff(),
    errors.IntakeRulesFull("100 intake rules"),
    errors.QuotaExceeded("creates_per_second", 100, 2_000),
    errors.QuotasFull(500),
    errors.QuotasOff(),
    errors.SummaryOff(),
    errors.SwitchesFull(100),
    errors.TypesFull(100),
    errors.TaskArchived(TaskId.parse("01M7XZ8CGJ0013P2ZBN3YDT3DX"), 30 * DAY, RetentionPolicy(400 * DAY)),
    errors.TaskDeleted(TaskId.parse("01M7XZ8CGJ0013P2ZBN3YDT3DX")),
    errors.TargetSilent("the endpoint did not answer within 5 s"),
    errors.TargetUnreachable("the endpoint refused the connection"),
    errors.Unavailable("throttled"),
)
