"""The REST API for intake rules: bodies, responses, operations, and the tasks and filters derived from an event."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from hashlib import sha256
from typing import TYPE_CHECKING, Annotated, Any, cast

from pydantic import ConfigDict, Field
from typing_extensions import TypedDict  # required by pydantic before Python 3.12

from duetime.contract import signals
from duetime.contract.bulk import bodies as bulk_bodies
from duetime.contract.bulk.bodies import BulkCancel, OpenTaskFilter, read_filter_action
from duetime.contract.http.operation import Operation, Returns
from duetime.contract.http.request_errors import Fault, FaultCode, FieldsInvalid
from duetime.contract.http.request_json import Document, path_of
from duetime.contract.http.request_model import Body
from duetime.contract.http.validation_errors import matching_parameter, read_body
from duetime.contract.signals import SignalCreate, signal_of
from duetime.contract.tasks.bodies import TaskCreate
from duetime.contract.tasks.decoding import spec_of, task_spec_at
from duetime.contract.tasks.fields import OWNER_PATTERN, SCHEDULE_NAME_PATTERN
from duetime.contract.tasks.responses import Instant
from duetime.contract.tasks.target_fields import EventKey, EventName
from duetime.domain import errors
from duetime.domain.bulk import EventRequest
from duetime.domain.callers import Role
from duetime.domain.event_patterns import PatternInvalid, reject_pattern
from duetime.domain.intake_rules import IntakeAction, IntakeRule
from duetime.domain.limits import MAX_ACTION_REASON_LENGTH, MAX_INTAKE_RULE_FIELDS, MAX_INTAKE_RULES
from duetime.domain.operating_parameters import INTAKE_KEPT, INTAKE_RULES_LIFE
from duetime.domain.tasks.creation import IdempotencyKey, Order, Origin
from duetime.domain.times import SECOND, to_iso
from duetime_common.conditions import BudgetSpent, ConditionInvalid, evaluate, reject_expression

if TYPE_CHECKING:
    from duetime.domain.intake_rules import IntakeEvent

_NAME = re.compile(SCHEDULE_NAME_PATTERN)
_FIELD = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*")
_MAX_FIELD_LENGTH = 128

_Fields = Annotated[
    dict[str, str],
    Field(
        max_length=MAX_INTAKE_RULE_FIELDS,
        description="Fields to set from the event, by name; a dotted name such as `tags.order` is a nested "
        "field. Each value is a JMESPath expression over the event, such as `detail.order.id`.",
    ),
]


class IntakeCreate(Body):
    """The task that each matching event creates."""

    task: Annotated[
        TaskCreate,
        Field(description="The task, as in `createTask`. `delay_seconds` counts from the time of the event."),
    ]
    fields: _Fields = Field(default_factory=dict)


class IntakeCancel(Body):
    """The tasks that each matching event cancels."""

    filter: Annotated[
        OpenTaskFilter, Field(description="The owner's tasks to cancel; a task must meet all conditions.")
    ] = OpenTaskFilter()
    fields: _Fields = Field(default_factory=dict)
    force: Annotated[
        bool, Field(description="Whether running tasks are also asked to stop, at their next opportunity.")
    ] = False


class IntakeSignal(Body):
    """The signal that each matching event sends."""

    name: EventName
    key: EventKey = ""
    payload: Annotated[Any, Field(description="The result of the tasks that wait for the event: any JSON.")] = None
    fields: _Fields = Field(default_factory=dict)


class IntakeRulePut(Body):
    """An intake rule, which defines the action for events that match a pattern."""

    model_config = ConfigDict(
        json_schema_extra={
            "oneOf": [{"required": ["create"]}, {"required": ["cancel"]}, {"required": ["signal"]}],
            "examples": [
                {
                    "pattern": {"source": ["com.example.orders"], "detail-type": ["OrderPlaced"]},
                    "create": {
                        "task": {"type": "mail.send", "delay_seconds": 3600},
                        "fields": {"payload": "detail.order", "tags.order": "detail.order.id"},
                    },
                }
            ],
        }
    )

    pattern: Annotated[
        dict[str, Any],
        Field(description="An EventBridge event pattern, with all comparison operators, that selects events."),
    ]
    create: Annotated[IntakeCreate | None, Field(description="The task that each event creates.")] = None
    cancel: Annotated[IntakeCancel | None, Field(description="The tasks that each event cancels.")] = None
    signal: Annotated[IntakeSignal | None, Field(description="The signal that each event sends to waiting tasks.")] = (
        None
    )
    owner: Annotated[
        str | None,
        Field(pattern=f"^{OWNER_PATTERN}$", description="Owner of the tasks; null for the setting `intake_owner`."),
    ] = None
    description: Annotated[
        str, Field(max_length=MAX_ACTION_REASON_LENGTH, description="Human-readable description.")
    ] = ""


class IntakeRuleResponse(TypedDict):
    """An intake rule."""

    name: Annotated[str, Field(description="Name of the rule.")]
    pattern: Annotated[Mapping[str, Any], Field(description="The EventBridge event pattern that selects events.")]
    create: Annotated[
        Mapping[str, Any] | None,
        Field(description="The task that each event creates, and the fields to set from the event."),
    ]
    cancel: Annotated[
        Mapping[str, Any] | None,
        Field(description="The filter for tasks that each event cancels, and the fields to set from the event."),
    ]
    signal: Annotated[
        Mapping[str, Any] | None,
        Field(description="The signal that each event sends, and the fields to set from the event."),
    ]
    owner: Annotated[str, Field(description="Owner of the tasks.")]
    description: Annotated[str, Field(description="Human-readable description.")]
    updated_at: Annotated[Instant, Field(description="When the rule was last set.")]
    updated_by: Annotated[str, Field(description="Who last set the rule.")]


class IntakeRuleList(TypedDict):
    """The intake rules of a deployment."""

    rules: Annotated[Sequence[IntakeRuleResponse], Field(description="All rules, by name.")]


def rule_name(text: str) -> str:
    """Parses the name in a path.

    Raises:
        IntakeRuleNotFound: the text cannot be a name.
    """
    if _NAME.fullmatch(text) is None:
        raise errors.IntakeRuleNotFound(text)
    return text


def new_rule_name(text: str) -> str:
    """Parses the name in the path of a PUT.

    Raises:
        ParametersInvalid: the text cannot be a name.
    """
    return matching_parameter(text, SCHEDULE_NAME_PATTERN)


def rule_of(name: str, document: Document, owner: str) -> IntakeRule:
    """Decodes a rule.

    Args:
        name: name of the rule.
        document: the body.
        owner: owner of the tasks if the body names no owner.

    Raises:
        FieldsInvalid: some fields are invalid.
    """
    body = read_body(IntakeRulePut, document)
    try:
        reject_pattern(body.pattern)
    except PatternInvalid as fault:
        raise _refused(("pattern", *fault.place), str(fault)) from None
    if [body.create, body.cancel, body.signal].count(None) != len(IntakeAction) - 1:
        raise _refused((), "should have one of create, cancel and signal")
    action, request, fields = _effect_of(body, cast("Mapping[str, Any]", document.value))
    _reject_fields(fields, action)
    return IntakeRule(name, body.pattern, action, request, fields, body.owner or owner, body.description)


def _effect_of(
    body: IntakeRulePut, given: Mapping[str, Any]
) -> tuple[IntakeAction, Mapping[str, Any], Mapping[str, str]]:
    """A rule's action, which consists of its kind, the request, and the fields that are taken from the event."""
    if body.create is not None:
        spec_of(body.create.task, ("create", "task"))
        return IntakeAction.CREATE, given["create"]["task"], body.create.fields
    if body.signal is not None:
        request = {name: value for name, value in given["signal"].items() if name != "fields"}
        try:
            signal_of(Document(request, marked=False))
        except FieldsInvalid as fault:
            raise FieldsInvalid([replace(each, field=f"signal.{each.field}") for each in fault.faults]) from None
        return IntakeAction.SIGNAL, request, body.signal.fields
    cancel = body.cancel or IntakeCancel()
    if cancel.filter.is_empty and not cancel.fields:
        raise _refused(("cancel", "filter"), "is empty: it would cancel every task of the owner")
    return IntakeAction.CANCEL, {"filter": given["cancel"].get("filter", {}), "force": cancel.force}, cancel.fields


_KEY_OF_SIGNAL = (IntakeAction.SIGNAL, "key")
_MODELS: Mapping[IntakeAction, type[Body]] = {
    IntakeAction.CREATE: TaskCreate,
    IntakeAction.CANCEL: OpenTaskFilter,
    IntakeAction.SIGNAL: SignalCreate,
}


def _reject_fields(fields: Mapping[str, str], action: IntakeAction) -> None:
    model = _MODELS[action]
    for name, expression in fields.items():
        place = (action.value, "fields", name)
        if len(name) > _MAX_FIELD_LENGTH or _FIELD.fullmatch(name) is None:
            raise _refused(place, "should be the name of a field, or names joined by dots")
        if name.split(".")[0] not in model.model_fields:
            raise _refused(place, "is not a known field")
        try:
            reject_expression(expression)
        except ConditionInvalid as fault:
            raise _refused(place, str(fault)) from None


def rule_response(rule: IntakeRule) -> IntakeRuleResponse:
    """The response for a rule."""
    shown = {
        IntakeAction.CREATE: {"task": rule.request, "fields": rule.fields},
        IntakeAction.CANCEL: {**rule.request, "fields": rule.fields},
        IntakeAction.SIGNAL: {**rule.request, "fields": rule.fields},
    }[rule.action]
    return IntakeRuleResponse(
        name=rule.name,
        pattern=rule.pattern,
        create=shown if rule.action is IntakeAction.CREATE else None,
        cancel=shown if rule.action is IntakeAction.CANCEL else None,
        signal=shown if rule.action is IntakeAction.SIGNAL else None,
        owner=rule.owner,
        description=rule.description,
        updated_at=to_iso(rule.updated_at),
        updated_by=rule.updated_by,
    )


class RuleReader:
    """Implements `duetime.services.intake.RuleReader` with the REST contract's pydantic models."""

    def __call__(self, rule: IntakeRule, event: IntakeEvent) -> Order | EventRequest:
        """A rule's result for a matching event.

        Raises:
            RuleNotApplicable: fields that the rule needs are missing from the event or invalid.
        """
        try:
            if rule.action is IntakeAction.CANCEL:
                return _cancellation(rule, event)
            filled = _filled(rule.request, rule, event)
            if rule.action is IntakeAction.SIGNAL:
                return _signal(rule, event, filled)
            return Order(task_spec_at(filled, (), Document(filled, marked=False)), origin=_origin(rule, event))
        except FieldsInvalid as fault:
            raise RuleNotApplicable(f"intake rule {rule.name}: {fault}") from None


class RuleNotApplicable(errors.RequestError):
    """An event matches a rule, but the rule's action is impossible."""


def _origin(rule: IntakeRule, event: IntakeEvent) -> Origin:
    # Every matching rule creates a separate task from the same event.
    return Origin(f"{event.origin.source}#{rule.name}", event.origin.id, event.origin.at)


def _cancellation(rule: IntakeRule, event: IntakeEvent) -> EventRequest:
    filled = _filled(rule.request["filter"], rule, event)
    body = {"filter": filled, "force": rule.request["force"], "reason": f"intake rule {rule.name}"}
    document = Document(body, marked=False)
    text = json.dumps(body, ensure_ascii=False).encode()
    request = bulk_bodies.request_of(read_filter_action(BulkCancel, document), "", text, None)
    return EventRequest(request, _key(rule, event, text))


def _signal(rule: IntakeRule, event: IntakeEvent, filled: Mapping[str, Any]) -> EventRequest:
    text = json.dumps(filled, ensure_ascii=False).encode()
    request = signals.request_of(signal_of(Document(filled, marked=False)), text)
    return EventRequest(request, _key(rule, event, text))


def _key(rule: IntakeRule, event: IntakeEvent, text: bytes) -> IdempotencyKey:
    """The key that identifies repeated deliveries of an event."""
    origin = _origin(rule, event)
    digest = sha256(f"{origin.source}\0{origin.id}".encode()).hexdigest()
    return IdempotencyKey(f"intake:{digest}", sha256(text).hexdigest(), INTAKE_KEPT)


def _filled(request: Mapping[str, Any], rule: IntakeRule, event: IntakeEvent) -> Mapping[str, Any]:
    """The request of a rule, with the fields that the rule sets from an event.

    A field whose expression has no value keeps the rule's value. A missing value is rejected in a filter,
    because the filter would then match more tasks, and in a signal's key, because the signal would then be about
    another event.
    """
    filled: Mapping[str, Any] = request
    for name, expression in rule.fields.items():
        value = _value(name, expression, event)
        if value is None and (rule.action is IntakeAction.CANCEL or (rule.action, name) == _KEY_OF_SIGNAL):
            raise _refused((name,), f"has no value: {expression} is null in the event")
        if value is not None:
            filled = _with(filled, name.split("."), value)
    return filled


def _value(name: str, expression: str, event: IntakeEvent) -> Any:  # noqa: ANN401 - any JSON
    try:
        return evaluate(expression, event.value)
    except BudgetSpent as spent:
        raise _refused((name,), str(spent)) from None
    except Exception as error:  # noqa: BLE001 - of any kind, for values of another type
        raise _refused((name,), f"{expression} has no value for the event: {' '.join(str(error).split())}") from None


def _with(request: Mapping[str, Any], names: Sequence[str], value: object) -> Mapping[str, Any]:
    name, *inner = names
    known = request.get(name)
    return {**request, name: _with(known if isinstance(known, dict) else {}, inner, value) if inner else value}


def _refused(place: Sequence[str], reason: str) -> FieldsInvalid:
    return FieldsInvalid([Fault(path_of(place), reason, FaultCode.INVALID)])


_OFF = (errors.IntakeOff,)
LIST = Operation(
    "listIntakeRules",
    "GET /v1/intake-rules",
    "List intake rules",
    Returns(IntakeRuleList, "The rules."),
    description="For operators.",
    role=Role.OPERATOR,
    errors=_OFF,
)
READ = Operation(
    "getIntakeRule",
    "GET /v1/intake-rules/{name}",
    "Get an intake rule",
    Returns(IntakeRuleResponse, "The rule."),
    description="For operators.",
    role=Role.OPERATOR,
    errors=_OFF,
)
PUT = Operation(
    "putIntakeRule",
    "PUT /v1/intake-rules/{name}",
    "Set an intake rule",
    Returns(IntakeRuleResponse, "The rule."),
    description="For operators. Completely replaces any rule with the same name. The change takes effect within "
    f"{INTAKE_RULES_LIFE // SECOND} seconds. An event that matches several rules triggers each of them; an event that "
    f"matches no rule is dropped. A deployment has at most {MAX_INTAKE_RULES} rules.",
    body=IntakeRulePut,
    role=Role.OPERATOR,
    errors=(*_OFF, errors.IntakeRulesFull),
    nesting=2,
)
DELETE = Operation(
    "deleteIntakeRule",
    "DELETE /v1/intake-rules/{name}",
    "Delete an intake rule",
    Returns(IntakeRuleResponse, "The deleted rule."),
    description=f"For operators. The rule stops matching events within {INTAKE_RULES_LIFE // SECOND} seconds.",
    role=Role.OPERATOR,
    errors=_OFF,
)
