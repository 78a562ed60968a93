"""Describes fields without a description in their model, by a request's model or by their name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime.contract.openapi.docstring_descriptions import default_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Schema = dict[str, Any]
_LEAST_IN_COMMON = 3
_NOT_WHAT_IT_IS = ("Filter", "Patch", "Update")
"""Suffixes of requests whose descriptions concern filters or changes, not the meaning of fields."""
MEANINGS: Mapping[str, str] = {
    "arn": "ARN of the AWS resource.",
    "attempts": "The attempts, oldest first.",
    "backfills": "The backfills of the schedule, oldest first.",
    "calendars": "The calendars on this page.",
    "definitions": "The definitions on this page.",
    "created_at": "When it was created.",
    "detail": "What happened in this case, for people.",
    "due_at": "When it is due.",
    "errors": "The faults of single fields, parameters and headers; empty if there are none.",
    "expires_at": "When the lease ends, unless it is renewed.",
    "field": "Path of the field, or name of the parameter or header; `body` for the whole body.",
    "finished_at": "When it ended; null before that.",
    "holders": "The tasks that hold the lock.",
    "host": "The host.",
    "id": "Its id.",
    "instance": "Identifies the request, as in the logs.",
    "key": "Key of the lock.",
    "kind": "The kind of target.",
    "leases": "The leases, each with its task.",
    "locks": "The locks on this page.",
    "message": "A text for people.",
    "mode": "How the Lambda function is called.",
    "node": "Name of the node.",
    "nodes": "Names of the nodes, in order.",
    "occurrences": "The occurrences, in order of time.",
    "operations": "The bulk operations, newest first.",
    "owner": "The owner whose calls it concerns.",
    "percent": "Progress in percent.",
    "reason": "The reason, for people.",
    "results": "The result of each task, in the order of the request.",
    "run": "Number of the run of the topology.",
    "runs": "Whether it runs.",
    "schedules": "The schedules on this page.",
    "seconds": "Its duration in seconds.",
    "started_at": "When the first attempt started; null before that.",
    "status": "HTTP status code.",
    "switches": "The switches.",
    "task_id": "Id of the task.",
    "tasks": "The tasks.",
    "title": "The kind of problem, for people.",
    "topologies": "The topologies on this page.",
    "type": "A URI that identifies the kind of problem.",
    "updated_at": "When it was last updated.",
    "updated_by": "Who last updated it.",
    "version": "Grows with every write.",
    "versions": "The versions, latest first.",
    "waiters": "The first tasks that wait for the lock, in order.",
    "worker": "Name of the worker.",
}
"""Meanings of names that are the same in all schemas."""


def describe_fields(schemas: dict[str, Schema], requests: Iterable[str]) -> None:
    """Describes each field without a description, like the same field of the matching request, or by its name.

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
    """The description of the only model that a field refers to, besides null."""
    models = [one["$ref"].rpartition("/")[2] for one in field.get("anyOf", ()) if "$ref" in one]
    return schemas[models[0]].get("description", "") if len(models) == 1 else ""


def _texts(schema: Schema) -> Mapping[str, str]:
    properties: Mapping[str, Schema] = schema.get("properties", {})
    described = {name: default_in(field.get("description", ""))[0] for name, field in properties.items()}
    return {name: text for name, text in described.items() if text}


def _counterpart(schema: Schema, asked: Mapping[str, Mapping[str, str]]) -> Mapping[str, str]:
    """The descriptions of the request that has most fields in common with a response; empty if those are few."""
    names = set(schema.get("properties", {}))
    best = max(asked.values(), key=lambda texts: (len(names & set(texts)), -len(texts)), default={})
    return best if len(names & set(best)) >= _LEAST_IN_COMMON else {}
