"""Names of the models in the document, where they differ from the names of classes.

Responses have plain nouns: `Task`, `Schedule`, `RetryPolicy`. Parts of requests are named `...Input`, because they may
omit fields that responses always have; bodies of requests name the action: `TaskCreate`, `TaskUpdate`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

Schema = dict[str, Any]
PREFIX = "#/components/schemas/"
REFERENCE = f"{PREFIX}{{model}}"
_RESPONSE = "Response"
_REFERENCE = re.compile(rf"{PREFIX}(\w+)")
NAMES: Mapping[str, str] = {
    # Bodies of requests whose plain names belong to other classes.
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
    # Responses whose plain names say too little.
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
    # Enumerations of the domain whose meaning depends on the module.
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
        schemas: by the names of the models' classes, which are also used in references.

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
