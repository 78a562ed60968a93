"""Converts schemas for clients.

A converted schema has only constructs that client generators support, and describes every field.

Constraints that generated clients cannot express are moved to the description. The API validates with its own models,
so the document may be more permissive than the models, but never stricter.

Models have different names from their classes: responses are plain nouns (`Task`, `Schedule`, `RetryPolicy`). Parts of
requests are named `...Input`, because they may omit fields that responses always have; request bodies name the action:
`TaskCreate`, `TaskUpdate`.
"""

from __future__ import annotations

import json
import re
from itertools import combinations
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping


Schema = dict[str, Any]
PREFIX = "#/components/schemas/"
REFERENCE = f"{PREFIX}{{model}}"
_RESPONSE = "Response"
_REFERENCE = re.compile(rf"{PREFIX}(\w+)")
NAMES: Mapping[str, str] = {
    # These are request bodies whose simple names are used by other classes.
    "CalendarFields": "CalendarPut",
    "LeaseRequest": "LeaseAcquire",
    "SchedulePatch": "ScheduleUpdate",
    "TopologyDefinitionFields": "TopologyDefinitionPut",
    "TaskPatch": "TaskUpdate",
    "TypeDefaultsPut": "TaskTypePut",
    "TaskQueryBody": "TaskQuery",
    # Parts of requests.
    "AfterOccurrence": "ScheduleOccurrenceReferenceInput",
    "ApprovalTarget": "ApprovalTargetInput",
    "BatchTarget": "BatchTargetInput",
    "CallBatch": "HttpBatchInput",
    "CodeBuildTarget": "CodeBuildTargetInput",
    "Debounce": "TaskDebounceInput",
    "DefinitionParameter": "TopologyParameterInput",
    "DefinitionRun": "TopologyDefinitionRunInput",
    "EcsTarget": "EcsTargetInput",
    "EventBridgeTarget": "EventBridgeTargetInput",
    "EventTarget": "EventTargetInput",
    "GlueTarget": "GlueTargetInput",
    "HandlerTarget": "HandlerTargetInput",
    "HttpTarget": "HttpTargetInput",
    "LambdaTarget": "LambdaTargetInput",
    "Lock": "TaskLockInput",
    "NotifyOn": "NotifyOnInput",
    "OrderKey": "OrderedKeyInput",
    "PermanentTiming": "PermanentTimingInput",
    "PullTarget": "PullTargetInput",
    "Rate": "TaskRateInput",
    "RequestAuth": "HttpAuthInput",
    "RequestBody": "HttpContentInput",
    "ResponseOptions": "HttpResponseOptionsInput",
    "Retry": "RetryPolicyInput",
    "SnsTarget": "SnsTargetInput",
    "SqsTarget": "SqsTargetInput",
    "StepFunctionsTarget": "StepFunctionsTargetInput",
    "SwitchRate": "SwitchRateInput",
    "TaskTemplate": "TaskTemplateInput",
    "TopologyNode": "TopologyNodeInput",
    "TopologyTarget": "TopologyTargetInput",
    "Unique": "UniqueKeyInput",
    # These are responses whose simple names are too vague.
    "TypePage": "TaskTypePage",
    "TypeResponse": "TaskType",
    # Parts of responses.
    "AfterOccurrenceResponse": "ScheduleOccurrenceReference",
    "CallBatchResponse": "HttpBatch",
    "DebounceResponse": "TaskDebounce",
    "DefinitionDiff": "TopologyDefinitionDiff",
    "DefinitionPage": "TopologyDefinitionPage",
    "DefinitionResponse": "TopologyDefinition",
    "DefinitionRunResponse": "TopologyDefinitionRun",
    "DefinitionSummary": "TopologyDefinitionSummary",
    "DifferenceResponse": "TopologyDefinitionChange",
    "LeaseResponse": "TaskLease",
    "LeasedResponse": "Lease",
    "NodeResponse": "TopologyNode",
    "ParameterResponse": "TopologyParameter",
    "VersionList": "TopologyDefinitionVersionList",
    "VersionResponse": "TopologyDefinitionVersion",
    "OrderKeyResponse": "OrderedKey",
    "PermanentResponse": "PermanentTiming",
    "ProblemFault": "Fault",
    "RequestAuthResponse": "HttpAuth",
    "RequestBodyResponse": "HttpContent",
    "ResponseOptionsResponse": "HttpResponseOptions",
    "RetryResponse": "RetryPolicy",
    "UniqueResponse": "UniqueKey",
    # These are enumerations in the domain whose meaning depends on the module.
    "AfterFailure": "OrderedKeyFailurePolicy",
    "BulkKind": "BulkOperationKind",
    "BulkState": "BulkOperationState",
    "Cause": "ScheduleCause",
    "Dialect": "CronDialect",
    "Fold": "DstFold",
    "Gap": "DstGap",
    "LockMode": "TaskLockMode",
    "LockScope": "TaskLockScope",
    "OnConflict": "UniqueKeyConflictPolicy",
    "OnExcluded": "ExcludedPolicy",
    "OnFailure": "TopologyFailurePolicy",
    "ParameterType": "TopologyParameterType",
    "Overlap": "OverlapPolicy",
    "Priority": "TaskPriority",
    "State": "TaskState",
    "Until": "UniqueKeyScope",
}


def name_of(model: type | str) -> str:
    """The name of a model in the document."""
    name = model if isinstance(model, str) else model.__name__
    return NAMES.get(name, name.removesuffix(_RESPONSE))


def reference(model: type | str) -> Schema:
    """A reference to a model's schema."""
    return {"$ref": REFERENCE.format(model=name_of(model))}


def renamed(schemas: Mapping[str, Schema]) -> dict[str, Schema]:
    """Renames schemas to the document's names, which must be unique.

    Args:
        schemas: the schemas by the names of the models' classes, which references also use.

    Raises:
        ValueError: two models would have the same name.
    """
    found: dict[str, Schema] = {}
    for name, schema in schemas.items():
        if name_of(name) in found:
            raise ValueError(f"two models are called {name_of(name)} in the document")
        found[name_of(name)] = _with_names(schema)
    return found


def _with_names(value: Any) -> Any:  # noqa: ANN401 - any part of a schema
    if isinstance(value, dict):
        return {key: _with_names(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_with_names(each) for each in value]
    if isinstance(value, str) and (found := _REFERENCE.fullmatch(value)):
        return f"{PREFIX}{name_of(found[1])}"
    return value


DEFAULT = "Default: "
_NOTHING: tuple[object, ...] = (None, "", [], {})
"""Defaults that descriptions do not mention, because these values only mean that the field was omitted."""
_CONDITIONS = ("oneOf", "anyOf", "allOf", "not", "if", "then", "else")
_CONDITION_KEYS = frozenset({"required", "properties", *_CONDITIONS})


def portable(schema: Schema) -> Schema:
    """Converts a schema, including nested schemas."""
    within = {name: _portable_value(name, value) for name, value in schema.items()}
    for rewrite in _REWRITES:
        within = rewrite(within)
    return within


def _portable_value(name: str, value: object) -> object:
    if name in ("properties", "$defs", "patternProperties") and isinstance(value, dict):
        return {key: portable(each) for key, each in value.items()}
    if name in ("examples", "default", "const", "enum"):
        return value
    if isinstance(value, dict):
        return portable(value)
    return [portable(each) if isinstance(each, dict) else each for each in value] if isinstance(value, list) else value


def with_sentence(schema: Schema, sentence: str) -> Schema:
    """Adds a sentence to a schema's description."""
    description = schema.get("description", "")
    return {**schema, "description": f"{description} {sentence}".strip()}


def _without_title(schema: Schema) -> Schema:
    """Removes titles that repeat a field's name; a field that is itself named title is kept."""
    return {name: value for name, value in schema.items() if name != "title" or not isinstance(value, str)}


def _with_map(schema: Schema) -> Schema:
    """Describes map keys with `propertyNames`, because generators interpret `patternProperties` as an empty object."""
    patterns: Mapping[str, Schema] = schema.get("patternProperties", {})
    if len(patterns) != 1 or schema.get("additionalProperties") is not False:
        return schema
    ((pattern, value),) = patterns.items()
    kept = {name: each for name, each in schema.items() if name != "patternProperties"}
    return {**kept, "additionalProperties": value, "propertyNames": {"pattern": pattern}}


def _with_default_in_words(schema: Schema) -> Schema:
    """Describes a default in words, because clients send declared defaults, and some clients then require the field."""
    if "default" not in schema:
        return schema
    kept = {name: value for name, value in schema.items() if name != "default"}
    default = schema["default"]
    if default in _NOTHING:
        return kept
    # Only Python distinguishes 5.0 from 5.
    text = json.dumps(default).replace(".0,", ",").replace(".0}", "}") if isinstance(default, dict) else _text(default)
    return with_sentence(kept, f"{DEFAULT}{text}.")


def _text(default: object) -> str:
    if isinstance(default, str):
        return default
    return f"{default:g}" if isinstance(default, float) else json.dumps(default)


def _with_description_outside(schema: Schema) -> Schema:
    """If a field allows null and one other type, moves that type's description to the field itself."""
    choices = [each for each in schema.get("anyOf", []) if each != {"type": "null"}]
    if len(choices) != 1 or "description" in schema or "description" not in choices[0]:
        return schema
    text = choices[0]["description"]
    inner = [{k: v for k, v in each.items() if k != "description"} for each in schema["anyOf"]]
    return {**schema, "anyOf": inner, "description": text}


def _with_conditions_in_words(schema: Schema) -> Schema:
    """Describes allowed combinations in words, because a choice between `required` lists leads to an untyped body."""
    if "properties" not in schema:
        return schema
    conditions = {name: schema[name] for name in _CONDITIONS if name in schema and _is_bare(schema[name])}
    if not conditions:
        return schema
    kept = {name: value for name, value in schema.items() if name not in conditions}
    sentences = [sentence for name, value in conditions.items() for sentence in _sentences(name, value)]
    return with_sentence(kept, " ".join(sentences))


def _is_bare(condition: object) -> bool:
    """Whether a condition only says which fields are present."""
    if isinstance(condition, list):
        return all(_is_bare(each) for each in condition)
    return isinstance(condition, dict) and set(condition) <= _CONDITION_KEYS


def _sentences(name: str, value: Any) -> Iterator[str]:  # noqa: ANN401 - a schema, or a list of them
    if name == "oneOf":
        yield f"Exactly one of {_names(field for each in value for field in each.get('required', ()))} is required."
    elif name == "not":
        groups = [each["required"] for each in value.get("anyOf", [value]) if "required" in each]
        yield from _exclusions(groups)
    # A condition with `if` is described where it is declared.


def _exclusions(groups: list[list[str]]) -> Iterator[str]:
    fields = list(dict.fromkeys(field for group in groups for field in group))
    pairs = {frozenset(pair) for pair in combinations(fields, 2)}
    if pairs == {frozenset(group) for group in groups}:
        yield f"At most one of {_names(fields)} can be given."
    else:
        yield from (f"{_names(group)} cannot be given together." for group in groups)


def _names(fields: Iterable[str]) -> str:
    *others, last = [f"`{field}`" for field in fields]
    return f"{', '.join(others)} and {last}" if others else last


_REWRITES: tuple[Callable[[Schema], Schema], ...] = (
    _without_title,
    _with_map,
    _with_default_in_words,
    _with_description_outside,
    _with_conditions_in_words,
)


_SECTION = re.compile(r"\n\n(?:Attributes|Args|Raises):\n(?P<lines>.*)\Z", re.DOTALL)
_ENTRY = re.compile(r"^ {4}(?P<name>\w+): (?P<text>.*?)(?=^ {4}\w+: |\Z)", re.DOTALL | re.MULTILINE)
_DEFAULT = re.compile(rf" ?\b{DEFAULT}(?P<text>.*)\.\Z", re.DOTALL)
GROWS = "Later versions may add values."


def described(schema: Schema) -> Schema:
    """A model's schema with a plain description, and with the descriptions of fields from the docstring."""
    summary, attributes = parts_of(schema.get("description", ""))
    if "enum" in schema:
        return {**schema, "description": _with_values(summary, schema["enum"], attributes)}
    if "properties" not in schema:
        return {**schema, "description": summary} if summary else schema
    properties = {
        name: {**field, "description": f"{attributes[name][0].upper()}{attributes[name][1:]}"}
        if name in attributes and "description" not in field
        else field
        for name, field in schema["properties"].items()
    }
    return {**schema, "description": summary, "properties": properties}


def parts_of(docstring: str) -> tuple[str, dict[str, str]]:
    """The text of a docstring, and the docstring's descriptions of attributes by name."""
    section = _SECTION.search(docstring)
    entries = _ENTRY.finditer(section["lines"]) if section else ()
    text = docstring[: section.start()] if section else docstring
    return _one_line(text), {entry["name"]: _one_line(entry["text"]) for entry in entries}


def default_in(description: str) -> tuple[str, str]:
    """A description without its sentence about a default, and the default, which is empty if there is none."""
    found = _DEFAULT.search(description)
    return (description[: found.start()], found["text"]) if found else (description, "")


def _with_values(summary: str, values: list[str], attributes: dict[str, str]) -> str:
    meanings = {value: attributes[value.upper()] for value in values if value.upper() in attributes}
    listed = " ".join(f"`{value}`: {meaning}" for value, meaning in meanings.items())
    return f"{summary} {listed}".strip()


def _one_line(text: str) -> str:
    return " ".join(text.split())


_LEAST_IN_COMMON = 3
_NOT_WHAT_IT_IS = ("Filter", "Patch", "Update")
"""Name suffixes of requests whose field descriptions explain filters or changes instead of the fields' meaning."""
MEANINGS: Mapping[str, str] = {
    "arn": "ARN of the AWS resource.",
    "attempts": "The attempts, oldest first.",
    "backfills": "The backfills of the schedule, oldest first.",
    "calendars": "The calendars on this page.",
    "definitions": "The definitions on this page.",
    "created_at": "Time of creation.",
    "detail": "What went wrong in this case, for people.",
    "due_at": "Due time.",
    "errors": "Errors in individual fields, parameters and headers; empty if there are none.",
    "expires_at": "When the lease ends, unless it is renewed.",
    "field": "Path of the field, or name of the parameter or header; `body` for the entire body.",
    "finished_at": "End time; null before the end.",
    "holders": "The tasks that hold the lock.",
    "host": "The host.",
    "id": "Unique id.",
    "instance": "Id of the request, also used in the logs.",
    "key": "Key of the lock.",
    "kind": "The kind of target.",
    "leases": "The leases, each with its task.",
    "locks": "The locks on this page.",
    "message": "A text for people.",
    "quota": "For the code `quota_exceeded`, the exceeded quota, such as `creates_per_second`.",
    "mode": "How the Lambda function is called.",
    "node": "Name of the node.",
    "nodes": "Names of the nodes, in order.",
    "occurrences": "The occurrences, in order of time.",
    "operations": "The bulk operations, newest first.",
    "owner": "The owner whose calls are affected.",
    "percent": "Progress in percent.",
    "reason": "The reason, for people.",
    "results": "The result of each task, in the order of the request.",
    "run": "Number of the run of the topology.",
    "runs": "Whether the occurrence runs.",
    "schedules": "The schedules on this page.",
    "seconds": "Duration in seconds.",
    "started_at": "When the first attempt started; null until then.",
    "status": "HTTP status code.",
    "switches": "The switches.",
    "task_id": "Id of the task.",
    "tasks": "The tasks.",
    "title": "The kind of problem, for people.",
    "topologies": "The topologies on this page.",
    "type": "A URI that identifies the kind of problem.",
    "updated_at": "Time of the last update.",
    "updated_by": "Author of the last update.",
    "version": "Version that grows with every write.",
    "versions": "The versions, latest first.",
    "waiters": "The first tasks in the queue for the lock, in order.",
    "worker": "Name of the worker.",
}
"""Descriptions by field name, for field names that have the same meaning in all schemas."""


def describe_fields(schemas: dict[str, Schema], requests: Iterable[str]) -> None:
    """Adds a description to each field that has none, from the matching request's field or by the field's name.

    Args:
        schemas: all schemas, which are modified.
        requests: names of the schemas of requests, in any order.
    """
    asked = {name: _texts(schemas[name]) for name in sorted(requests) if not name.endswith(_NOT_WHAT_IT_IS)}
    for schema in schemas.values():
        known = _counterpart(schema, asked)
        for name, field in schema.get("properties", {}).items():
            if "description" not in field and "$ref" not in field:
                text = known.get(name) or _of_its_model(field, schemas) or MEANINGS.get(name)
                if text:
                    field["description"] = text


def _of_its_model(field: Schema, schemas: Mapping[str, Schema]) -> str:
    """The description of the model that a field refers to; empty unless the field refers to exactly one model."""
    models = [one["$ref"].rpartition("/")[2] for one in field.get("anyOf", ()) if "$ref" in one]
    return schemas[models[0]].get("description", "") if len(models) == 1 else ""


def _texts(schema: Schema) -> Mapping[str, str]:
    properties: Mapping[str, Schema] = schema.get("properties", {})
    described = {name: default_in(field.get("description", ""))[0] for name, field in properties.items()}
    return {name: text for name, text in described.items() if text}


def _counterpart(schema: Schema, asked: Mapping[str, Mapping[str, str]]) -> Mapping[str, str]:
    """The field descriptions of the request that shares the most fields with a response; empty if too few match."""
    names = set(schema.get("properties", {}))
    best = max(asked.values(), key=lambda texts: (len(names & set(texts)), -len(texts)), default={})
    return best if len(names & set(best)) >= _LEAST_IN_COMMON else {}
