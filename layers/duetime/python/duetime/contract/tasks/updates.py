"""Decodes updates of tasks, which are merge patches (RFC 7396)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime.contract.http.request_errors import Fault, FaultCode, FieldsInvalid
from duetime.contract.http.request_json import BODY, merged, path_of
from duetime.contract.http.validation_errors import read_body, validated
from duetime.contract.tasks.bodies import TaskFields, TaskPatch
from duetime.contract.tasks.encoding import request_fields
from duetime.contract.tasks.field_decoding import (
    ROOT,
    Place,
    delay_of,
    payload_bytes,
    plain_fields,
    reject_two_due_times,
    reject_two_forms_of_locks,
)
from duetime.domain.errors import FieldInvalid
from duetime.domain.tasks.creation import TaskUpdate
from duetime.domain.tasks.targets import TopologyTarget
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.contract.http.request_json import Document
    from duetime.domain.tasks.targets import Target
    from duetime.domain.tasks.task import Task
    from duetime.domain.tasks.task_changes import TaskChanges

_WHEN = frozenset({"due_at", "delay_seconds"})
_BY_GRAPH = "notify_within_seconds"
"""A field that a topology's graph determines, unless it is set explicitly."""


@frozen
class TaskFieldMerge:
    """Field updates that are merged into the stored values.

    Attributes:
        patch: the given fields, as JSON.
    """

    patch: Mapping[str, Any]

    def of(self, before: Task, default_target: Target) -> TaskChanges:
        """The new values of the given fields.

        Raises:
            FieldInvalid: a value is invalid.
        """
        known = request_fields(before.target, before)
        fields = merged({name: known[name] for name in self.patch if name in known}, self.patch)
        try:
            after = plain_fields(validated(TaskFields, fields))
        except FieldsInvalid as refusal:
            fault = refusal.faults[0]
            raise FieldInvalid(fault.field, fault.reason) from None
        changes: Any = {name: after[name] for name in self.patch}
        if self.patch.get("lock") or self.patch.get("locks"):
            # `lock` and `locks` are two forms of the same option, of which the record has only one.
            changes |= {"lock": after["lock"], "locks": after["locks"]}
        if changes.get("target", default_target) is None:
            changes["target"] = default_target
        if isinstance(changes.get("target", before.target), TopologyTarget) and _BY_GRAPH not in fields:
            changes.pop(_BY_GRAPH, None)
        return changes  # type: ignore[no-any-return]


def task_update(document: Document) -> TaskUpdate:
    """Decodes an update.

    Raises:
        FieldsInvalid: some fields are invalid, or no field is given.
    """
    return update_of(read_body(TaskPatch, document))


def update_of(body: TaskPatch, place: Place = ROOT) -> TaskUpdate:
    """Converts a body, or a part of a body, into an update.

    Raises:
        FieldsInvalid: fields contradict each other, or no field is given.
    """
    reject_two_due_times(body, place)
    reject_two_forms_of_locks(body.lock, body.locks, place)
    has_payload = "payload" in body.model_fields_set
    if has_payload and body.target is not None and body.target.definition is not None:
        reason = "cannot be given together with target.definition, whose graph is the payload"
        raise FieldsInvalid([Fault(path_of((*place, "payload")), reason, FaultCode.CONFLICT)])
    patch = body.model_dump(mode="json", exclude_unset=True, exclude={"payload", *_WHEN})
    if not patch and not has_payload and body.due_at is None and body.delay_seconds is None:
        raise FieldsInvalid([Fault(path_of(place) if place else BODY, "has no field to change", FaultCode.REQUIRED)])
    return TaskUpdate(
        fields={},
        due_at=body.due_at,
        delay=delay_of(body),
        payload=payload_bytes(body, place) if has_payload else None,
        merge=TaskFieldMerge(patch) if patch else None,
    )
