"""Describes the fields that their models leave undescribed, because a request's model or their name says it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime.contract.openapi.descriptions import default_in

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Schema = dict[str, Any]
_LEAST_IN_COMMON = 3
_BY_NAME: Mapping[str, str] = {
    "arn": "ARN of the AWS resource that is called.",
    "asked": "What its user asked of it; null if nothing.",
    "at": "The instant.",
    "attempts": "The attempts, the latest last.",
    "backfills": "The backfills of the schedule, the latest last.",
    "calendars": "The calendars.",
    "changed_at": "When it was changed last.",
    "changed_by": "Who changed it last.",
    "class": "Class of the error.",
    "code": "What is wrong, for programs.",
    "created_at": "When it was created.",
    "detail": "What happened this time, for people.",
    "documentation": "Where its documentation is.",
    "due_at": "When it is due.",
    "ended_at": "When it ended; null until then.",
    "ends_at": "When it ends.",
    "error": "Why it failed; null if it did not.",
    "errors": "What is wrong with each field, parameter or header; empty if it is none of them.",
    "expires_at": "When it ends, unless it is renewed.",
    "fence": "The fence of the attempt.",
    "field": "Path of the field, or the name of the parameter or header; `body` for the whole body.",
    "finished_at": "When it ended, with all that followed.",
    "from": "Where it begins, inclusive.",
    "health": "Where it says whether it answers.",
    "holder": "Who held it.",
    "holders": "Who holds it.",
    "host": "The host that is called.",
    "id": "Its id.",
    "instance": "Names the request; its log lines have the same name.",
    "key": "Its key.",
    "kind": "Which kind of target it is.",
    "last": "What it ran last; null before that.",
    "last_run": "What it ran last; null before that.",
    "leases": "The tasks that were leased, each with its lease.",
    "local_time": "The same by the clock of its time zone.",
    "locks": "The locks on this page.",
    "message": "A text for people.",
    "mode": "How it is called.",
    "name": "Its name.",
    "node": "The key of the node.",
    "nodes": "The nodes.",
    "note": "Why, for people.",
    "occurrences": "The occurrences, in order.",
    "openapi": "Where its OpenAPI document is.",
    "operations": "The bulk operations, the latest first.",
    "outcome": "How it ended.",
    "owner": "Whose it is.",
    "payload": "What it was given: any JSON.",
    "percent": "How far the work has come.",
    "problem": "Why it was refused.",
    "progress": "How far it has come, as the target told last; null if it told nothing.",
    "reason": "Why.",
    "recorded_at": "When it was recorded.",
    "requested_action": "What was asked of the running attempt; null if nothing was.",
    "result": "What it answered: any JSON; null until it has succeeded.",
    "results": "What became of each task, in the order they were given.",
    "retry": "How often and how patiently it is tried.",
    "run": "Which run of the topology it belongs to.",
    "runs": "Whether work runs then.",
    "scheduled_at": "The instant that it stands for.",
    "schedules": "The schedules on this page.",
    "scope": "How much it concerns.",
    "seconds": "How long it takes, in seconds.",
    "start": "Where it begins, inclusive.",
    "started_at": "When its first attempt started; null until then.",
    "state": "Where it stands.",
    "status": "The HTTP status.",
    "stopped": "Whether nothing of it begins.",
    "switches": "The switches.",
    "target": "What is called.",
    "task": "The task.",
    "task_id": "Id of the task.",
    "tasks": "The tasks.",
    "timezone": "IANA name of its time zone.",
    "title": "What kind of problem it is, for people.",
    "topologies": "The topologies on this page.",
    "topology_id": "Id of the topology.",
    "type": "Its type.",
    "updated_at": "When it was updated last.",
    "updated_by": "Who updated it last.",
    "version": "Grows with every write.",
    "waiters": "Which tasks wait for it, in their order.",
    "weekdays": "Days of the week.",
    "worker": "Which worker it is.",
}
"""Meanings of names that are the same wherever they stand."""


def describe_fields(schemas: dict[str, Schema], requests: Iterable[str]) -> None:
    """Describe each field that has no description: like the field of the request that it answers, or by its name.

    Args:
        schemas: all schemas, which are changed.
        requests: names of the schemas of requests.
    """
    asked = {name: _texts(schemas[name]) for name in requests}
    for schema in schemas.values():
        known = _counterpart(schema, asked)
        for name, field in schema.get("properties", {}).items():
            if "description" not in field and "$ref" not in field:
                text = known.get(name) or _of_its_model(field, schemas) or _BY_NAME.get(name)
                if text:
                    field["description"] = text


def _of_its_model(field: Schema, schemas: Mapping[str, Schema]) -> str:
    """What is said of the one model that a field refers to, if it is not null."""
    models = [one["$ref"].rpartition("/")[2] for one in field.get("anyOf", ()) if "$ref" in one]
    return schemas[models[0]].get("description", "") if len(models) == 1 else ""


def _texts(schema: Schema) -> Mapping[str, str]:
    properties: Mapping[str, Schema] = schema.get("properties", {})
    described = {name: default_in(field.get("description", ""))[0] for name, field in properties.items()}
    return {name: text for name, text in described.items() if text}


def _counterpart(schema: Schema, asked: Mapping[str, Mapping[str, str]]) -> Mapping[str, str]:
    """The descriptions of the request that has most fields in common with a response; none if those are few."""
    names = set(schema.get("properties", {}))
    best = max(asked.values(), key=lambda texts: (len(names & set(texts)), -len(texts)), default={})
    return best if len(names & set(best)) >= _LEAST_IN_COMMON else {}
