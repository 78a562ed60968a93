"""Imports schedules of EventBridge Scheduler and scheduled rules of EventBridge.

Source: EventBridge Scheduler API Reference (GetSchedule, Target, RetryPolicy), CloudFormation
`AWS::Scheduler::Schedule` and `AWS::Events::Rule`: by default, a failed call of the target is retried up to 185 times
within a day; a schedule does not wait for its target, so runs can overlap.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

from duetime_client.importers.draft import LONGEST_PERIOD, Outcome, Source, shown, type_of
from duetime_client.importers.yaml_source import Fields, line_of, readable_documents

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from duetime_client.importers.draft import Draft, Item

_KINDS = {"lambda": "lambda", "sqs": "sqs", "sns": "sns", "events": "eventbridge", "states": "step_functions"}
_SCHEDULE, _RULE = "AWS::Scheduler::Schedule", "AWS::Events::Rule"
_EXPRESSION = "ScheduleExpression"
_ACCOUNT = "the account"
_JITTER_MINUTES = 1_440
_RETRIES, _AGE = 185, 86_400
_LONGEST_ARN = 256
_ARN_PARTS = 6
_PLACEHOLDER = re.compile(r"<aws\.(?:scheduler|events)\.[\w.-]+>")
_ROLE = "the worker's role calls the targets that the setting `aws_targets` names"
_READ = frozenset(
    {
        *("Name", "ScheduleExpression", "ScheduleExpressionTimezone", "FlexibleTimeWindow", "State", "StartDate"),
        *("EndDate", "Target", "Targets", "Description"),
    }
)
_KNOWN = {
    "ActionAfterCompletion": "a schedule without more occurrences is `ended`, and is kept until it is deleted",
    "KmsKeyArn": "the key of the table encrypts everything",
    "RoleArn": _ROLE,
    "EventPattern": "events create tasks through a separate rule: see the page about tasks from events",
    "EventBusName": "a schedule needs no event bus",
}
_IGNORED = frozenset({"Arn", "CreationDate", "LastModificationDate", "ResponseMetadata", "ManagedBy", "CreatedBy"})
_TARGET = frozenset(
    {"Arn", "Input", "RetryPolicy", "DeadLetterConfig", "RoleArn", "EventBridgeParameters", "SqsParameters", "Id"}
)
_WINDOW = frozenset({"Mode", "MaximumWindowInMinutes"})
_RETRY_POLICY = frozenset({"MaximumRetryAttempts", "MaximumEventAgeInSeconds"})
_KNOWN_TARGET = {
    "EcsParameters": "write the cluster and the container in `target`",
    "BatchParameters": "write the queue in `target`",
    "InputTransformer": "make the payload in the handler, or write it",
    "InputPath": "make the payload in the handler, or write it",
    "HttpParameters": "use a target of the kind http",
}


def import_eventbridge(draft: Draft, sources: Sequence[Source]) -> None:
    """Import the schedules in output of the AWS CLI and in CloudFormation templates."""
    for source, documents in readable_documents(draft, sources):
        found = [each for document in documents for each in _schedules(draft, source, document)]
        for line, name, fields, is_rule in found:
            import_one(draft, source, line, name, fields, is_rule=is_rule)
        if not found and not any(each.file == source.name for each in draft.findings):
            draft.unreadable(source, "has no EventBridge Scheduler schedule and no EventBridge rule")


def account_source() -> Source:
    """The source for findings about an AWS account."""
    return Source(_ACCOUNT, "")


def import_account(draft: Draft, session: Any) -> None:  # noqa: ANN401 - botocore has no types
    """Import all schedules and scheduled rules in the account and Region of a botocore session."""
    source = account_source()
    scheduler, events = session.create_client("scheduler"), session.create_client("events")
    for page in scheduler.get_paginator("list_schedules").paginate():
        for each in page["Schedules"]:
            got = scheduler.get_schedule(Name=each["Name"], GroupName=each["GroupName"])
            import_one(draft, source, 0, each["Name"], _plain(got), is_rule=False)
    for page in events.get_paginator("list_rules").paginate():
        for rule in page["Rules"]:
            if "ScheduleExpression" not in rule:
                continue
            pages = events.get_paginator("list_targets_by_rule").paginate(Rule=rule["Name"])
            targets = [target for found in pages for target in found["Targets"]]
            import_one(draft, source, 0, rule["Name"], _plain({**rule, "Targets": targets}), is_rule=True)


def _plain(answer: object) -> Fields:
    """Convert a botocore response to JSON values, with times as ISO 8601 text."""
    made: Fields = json.loads(
        json.dumps(answer, default=lambda each: each.isoformat()), object_pairs_hook=_fields_of_pairs
    )
    return made


def _fields_of_pairs(pairs: list[tuple[str, Any]]) -> Fields:
    made = Fields()
    made.update(pairs)
    return made


def _schedules(draft: Draft, source: Source, document: object) -> Iterator[tuple[int, str, Fields, bool]]:
    """The schedules and rules in a document: line, name, fields, and whether the entry is a rule."""
    if isinstance(document, list):
        for each in document:
            yield from _schedules(draft, source, each)
    if not isinstance(document, Fields):
        return
    if isinstance(document.get("Resources"), Fields):
        yield from _resources(draft, source, document["Resources"])
        return
    for key in ("Schedules", "Rules"):
        if isinstance(document.get(key), list):
            yield from _schedules(draft, source, document[key])
    name = document.get("Name")
    if isinstance(name, str):
        is_rule = "Targets" in document or ":rule/" in str(document.get("Arn"))
        yield document.line or line_of(source, name), name, document, is_rule


def _resources(draft: Draft, source: Source, resources: Fields) -> Iterator[tuple[int, str, Fields, bool]]:
    for logical, resource in resources.items():
        kind = resource.get("Type") if isinstance(resource, Fields) else None
        line = resources.lines.get(logical) or line_of(source, logical)
        properties = resource.get("Properties") if isinstance(resource, Fields) else None
        if kind in {_SCHEDULE, _RULE} and isinstance(properties, Fields):
            name = properties.get("Name")
            if "Condition" in resource:
                text = f"{shown(resource['Condition'])}: imported whether the condition holds or not"
                draft.note(source, line, logical, "Condition", Outcome.DIFFERS, text)
            yield line, name if isinstance(name, str) else logical, properties, kind == _RULE
        elif isinstance(properties, Fields) and isinstance(properties.get("Events"), Fields):
            for event, given in properties["Events"].items():
                if isinstance(given, Fields) and str(given.get("Type")).startswith("Schedule"):
                    text = "is a SAM event: deploy the template, and use --from-account"
                    draft.note(source, line, f"{logical}.{event}", "Events", Outcome.OMITTED, text)


def import_one(draft: Draft, source: Source, line: int, name: str, given: Fields, *, is_rule: bool) -> None:
    """Import a schedule, or import a rule as a schedule for each of its targets."""
    item = draft.item(source, line, name)
    expression = given.get(_EXPRESSION)
    if not isinstance(expression, str):
        if "EventPattern" in given:
            item.omit(_KNOWN["EventPattern"], "EventPattern")
        elif expression is None:
            item.omit("is not given: `list-schedules` leaves it out; use get-schedule, or --from-account", _EXPRESSION)
        else:
            item.omit(f"{shown(expression)} is known only to CloudFormation", _EXPRESSION)
        return
    if given.get("State") == "DISABLED" and item.omit_suspended("State"):
        return
    listed = given.get("Targets") if is_rule else [given.get("Target")]
    targets = [each for each in listed or [] if isinstance(each, Fields)]
    if not targets:
        item.omit("has no target here: list-schedules and list-rules leave it out; use --from-account", "Target")
        return
    for number, target in enumerate(targets):
        each = item if number == 0 else draft.item(source, line, f"{name}-{target.get('Id') or number + 1}")
        _timing(each, given, expression, is_rule=is_rule)
        each.fields["overlap"] = "allow_all"
        each.fields["task"] = _task(each, target)
        draft.add(each)
    if given.get("GroupName") not in {None, "default"}:
        item.differs("GroupName", f"names have no groups: {shown(given['GroupName'])} is not kept")
    item.comment(given.get("Description"), "Description")
    item.unread(given, _READ | _IGNORED | {"GroupName"}, "", _KNOWN)


def _timing(item: Item, given: Fields, expression: str, *, is_rule: bool) -> None:
    item.fields |= {"cron": expression, "dialect": "eventbridge"}
    if expression.strip().startswith("rate("):
        item.differs(_EXPRESSION, "the rate is counted from the creation of the schedule here, or `start_at`")
    zone = given.get("ScheduleExpressionTimezone")
    if zone is not None and not is_rule:
        if isinstance(zone, str):
            item.fields["timezone"] = zone
        else:
            item.lost("ScheduleExpressionTimezone", f"{shown(zone)} is known only to CloudFormation")
    window = given.get("FlexibleTimeWindow")
    window = window if isinstance(window, Fields) else Fields()
    item.unread(window, _WINDOW, "FlexibleTimeWindow.", {})
    minutes = window.get("MaximumWindowInMinutes")
    if isinstance(minutes, int):
        item.fields["jitter_seconds"] = min(minutes, _JITTER_MINUTES) * 60
    for key, field in (("StartDate", "start_at"), ("EndDate", "end_at")):
        if isinstance(given.get(key), str):
            item.fields[field] = given[key]


def _task(item: Item, target: Fields) -> dict[str, Any]:
    task: dict[str, Any] = {}
    arn = target.get("Arn")
    found = _target(target, arn) if isinstance(arn, str) and len(arn) <= _LONGEST_ARN else None
    if found is None:
        item.lost("Target.Arn", f"{shown(arn)} is not a duetime target, or is known only to CloudFormation")
        task["type"] = item.placeholder("the target is not carried over")
    else:
        task |= {"type": item.draft.options.task_type or type_of(item.name), "target": found}
    if "Input" in target:
        task |= _input(item, target["Input"])
    task["retry"] = _retry(item, target.get("RetryPolicy"))
    if isinstance(target.get("DeadLetterConfig"), Fields):
        item.differs("Target.DeadLetterConfig", "tasks that failed for good are listed by `duetime dead-letters`")
    if "RoleArn" in target:
        item.differs("Target.RoleArn", _ROLE)
    if "SqsParameters" in target:
        item.lost("Target.SqsParameters", "the message group is derived by duetime")
    if isinstance(parameters := target.get("EventBridgeParameters"), Fields):
        item.unread(parameters, frozenset({"DetailType"}), "Target.EventBridgeParameters.", {})
    item.unread(target, _TARGET, "Target.", _KNOWN_TARGET)
    return task


def _target(target: Mapping[str, Any], arn: str) -> dict[str, Any] | None:
    """The duetime target that calls the same resource; `None` if duetime cannot call the resource."""
    parts = arn.split(":", _ARN_PARTS - 1)
    if len(parts) < _ARN_PARTS or parts[0] != "arn" or not parts[4]:
        return None
    kind = _KINDS.get(parts[2])
    if kind is None or (kind == "eventbridge" and not parts[5].startswith("event-bus/")):
        return None
    if kind == "lambda" and not parts[5].startswith("function:"):
        return None
    if kind == "step_functions" and not parts[5].startswith("stateMachine:"):
        return None
    found = {"kind": kind, "arn": arn}
    parameters = target.get("EventBridgeParameters")
    if kind == "eventbridge" and isinstance(parameters, Fields) and isinstance(parameters.get("DetailType"), str):
        found["detail_type"] = parameters["DetailType"]
    return found


def _input(item: Item, given: object) -> dict[str, Any]:
    """Convert the input to a payload: the parsed value if the input is JSON, otherwise the text."""
    if not isinstance(given, str):
        item.lost("Target.Input", f"{shown(given)} is known only to CloudFormation")
        return {}
    if _PLACEHOLDER.search(given):
        item.differs("Target.Input", "<aws.scheduler.…> is not replaced; a handler has `context.schedule`")
    try:
        value = json.loads(given)
    except (ValueError, RecursionError):
        value = given
    payload = item.payload(value, "Target.Input")
    return {} if payload is None else {"payload": payload}


def _retry(item: Item, policy: object) -> dict[str, Any]:
    given = policy if isinstance(policy, Fields) else Fields()
    item.unread(given, _RETRY_POLICY, "Target.RetryPolicy.", {})
    retries, age = given.get("MaximumRetryAttempts", _RETRIES), given.get("MaximumEventAgeInSeconds", _AGE)
    attempts = item.attempts(retries, "Target.RetryPolicy")
    found: dict[str, Any] = {} if attempts is None else {"max_attempts": attempts}
    if isinstance(age, int) and attempts != 1:
        found["max_duration_seconds"] = min(max(age, 1), LONGEST_PERIOD)
    return found
