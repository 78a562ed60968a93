"""From the body of an update of a schedule to what it makes of one: a merge patch (RFC 7396)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from duetime.contract.http.json_paths import BODY
from duetime.contract.http.merge_patch import merged
from duetime.contract.http.request_errors import Fault, FaultCode, FieldsInvalid
from duetime.contract.http.request_json import reject_invalid_values
from duetime.contract.http.validation_errors import read_body, validated
from duetime.contract.schedules.bodies import SchedulePatch, TaskTemplate
from duetime.contract.schedules.decoding import LISTS, PLAIN_FIELDS, lists_of, readable, template_of
from duetime.contract.schedules.encoding import template_fields
from duetime.contract.schedules.timing_fields import TIMINGS
from duetime.domain.schedules.definition import ScheduleUpdate, Written
from duetime.domain.schedules.time_zones import zone_named

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.contract.http.request_json import Document
    from duetime.domain.tasks.task_spec import TaskSpec

_PAYLOAD, _TASK, _TOPOLOGY = "payload", "task", "topology"
_BY_GRAPH = ("notify_within_seconds",)
"""Fields of a task that follow from the graph of a topology, unless they are given."""


@dataclass(frozen=True, slots=True)
class TimingPatch:
    """What an update says of a timing; another timing replaces the one before."""

    body: SchedulePatch

    def of(self, before: Written) -> Written:
        """The timing with the update.

        Raises:
            FieldInvalid: there is none left, or more than one, or it cannot be accepted; says why.
        """
        body, given = self.body, self.body.model_fields_set
        fields: dict[str, Any] = {name: getattr(body, name) for name in TIMINGS if name in given}
        fields |= lists_of(body)
        if body.permanent is not None:
            has_gap = "gap_seconds" in body.permanent.model_fields_set
            fields["permanent"] = body.permanent.gap_seconds if has_gap else before.permanent or 0
        if all(value is None for value in fields.values()):
            fields = {name: getattr(before, name) for name in TIMINGS} | fields
        if "dialect" in given:
            fields["dialect"] = body.dialect
        elif fields.get("cron") is not None:
            fields["dialect"] = before.dialect
        return readable(Written(**fields))


@dataclass(frozen=True, slots=True)
class TaskPatch:
    """What an update says of the task of a schedule, merged; its payload is replaced as a whole."""

    patch: Mapping[str, Any]

    @property
    def has_payload(self) -> bool:
        """Whether it gives another payload."""
        return _PAYLOAD in self.patch

    def of(self, before: TaskSpec) -> TaskSpec:
        """The task with the update.

        Raises:
            FieldsInvalid: some fields cannot be accepted.
        """
        fields = merged(template_fields(before), self.patch, opaque=(_PAYLOAD,))
        if self.patch.keys() & {_PAYLOAD, "target"} and fields.get("target", {}).get("kind") == _TOPOLOGY:
            fields = {name: value for name, value in fields.items() if name not in _BY_GRAPH or name in self.patch}
        after = template_of(validated(TaskTemplate, fields, (_TASK,)))
        # A type that was accepted once is not refused by an update of something else.
        is_same = (after.type, after.target) == (before.type, before.target)
        return replace(after, allow_unknown_type=after.allow_unknown_type or is_same)


def schedule_update(document: Document, name: str) -> ScheduleUpdate:
    """The update that a body asks for, of the schedule of a name.

    Raises:
        FieldsInvalid: some fields cannot be accepted, or there are none.
        FieldInvalid: one of them cannot.
    """
    value = document.value
    task: object = {}
    if isinstance(value, dict):
        if not value:
            raise FieldsInvalid([Fault(BODY, "names no field to change", FaultCode.REQUIRED)])
        reject_invalid_values(value, document)
        task = value.get(_TASK, {})
        # Its task is read once it is merged; its own name changes nothing.
        value = {key: each for key, each in value.items() if key != _TASK and (key, each) != ("name", name)}
        document = replace(document, value=value)
    body = read_body(SchedulePatch, document)
    if not isinstance(task, dict):
        raise FieldsInvalid([Fault(_TASK, "should be an object", FaultCode.WRONG_TYPE)])
    given = body.model_fields_set
    fields: dict[str, Any] = {
        each: getattr(body, each) for each in (*PLAIN_FIELDS, "dst_gap", "dst_fold") if each in given
    }
    fields |= {each: tuple(getattr(body, each)) for each in LISTS if each in given}
    if "timezone" in given:
        fields["timezone"] = zone_named(body.timezone)
    timing = TimingPatch(body) if given & {*TIMINGS, "dialect"} else None
    return ScheduleUpdate(fields, timing=timing, task=TaskPatch(task) if task else None)
