"""The complete OpenAPI document, in general or for one deployment."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

from duetime.contract.http.operations import OPERATIONS
from duetime.contract.http.version import CONTRACT_VERSION
from duetime.contract.openapi.deployment import ANY, SERVERS, names_owner, security, security_schemes
from duetime.contract.openapi.examples import add_examples, problem_examples, recorded
from duetime.contract.openapi.parameters import parameters
from duetime.contract.openapi.responses import responses, shared_responses
from duetime.contract.openapi.schemas import reference, schemas
from duetime.contract.openapi.tags import TAGS, tag_of
from duetime.contract.openapi.webhooks import webhooks
from duetime.contract.tasks.action_bodies import OPTIONAL_BODIES

if TYPE_CHECKING:
    from collections.abc import Mapping

    from duetime.contract.http.operation import Operation

Schema = dict[str, Any]
_DESCRIPTION = """A distributed task scheduler in your own AWS account.

Later versions may add operations, optional fields and values of enumerations; they change and remove nothing."""
_INFO: Schema = {
    "title": "duetime",
    "version": CONTRACT_VERSION,
    "summary": "Runs tasks at their time: one-time tasks, schedules and graphs of tasks.",
    "description": _DESCRIPTION,
    "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
    "contact": {"name": "The operators of this deployment"},
}


@cache
def document(authentication: str = ANY) -> Schema:
    """The complete document; it is built once and shared, so it must not be changed.

    Args:
        authentication: of the deployment; by default, all supported ones.
    """
    examples = recorded()
    paths: dict[str, Schema] = {}
    for operation in OPERATIONS:
        described = _operation(operation, authentication, examples["operations"])
        paths.setdefault(operation.path, {})[operation.method.lower()] = described
    return {
        "openapi": "3.1.0",
        "info": _INFO,
        "servers": SERVERS,
        "security": security(authentication),
        "tags": [{"name": name, "description": text} for name, text in TAGS.items()],
        "paths": paths,
        "webhooks": _webhooks(examples["webhooks"]),
        "components": {
            "schemas": schemas(),
            "responses": shared_responses(),
            "examples": problem_examples(examples),
            "securitySchemes": security_schemes(authentication),
        },
    }


def _operation(operation: Operation, authentication: str, examples: Mapping[str, Any]) -> Schema:
    described: Schema = {
        "operationId": operation.id,
        "summary": operation.summary,
        "description": operation.description or operation.summary,
        "tags": [tag_of(operation)],
        "parameters": parameters(operation, names_owner=names_owner(authentication)),
        "responses": responses(operation),
    }
    if operation.body is not None:
        content: Schema = {"application/json": {"schema": reference(operation.body)}}
        content |= {media_type: {"schema": {"type": "string"}} for media_type in operation.body_types}
        described["requestBody"] = {"required": not issubclass(operation.body, OPTIONAL_BODIES), "content": content}
    if operation.is_question:
        # For read-only tools, because the method does not show whether an operation is safe.
        described["x-read-only"] = True
    if operation.is_public:
        described["security"] = []
    if operation.deprecated is not None:
        described["deprecated"] = True
    add_examples(described, examples.get(operation.id, {}))
    return described


def _webhooks(examples: Mapping[str, Any]) -> dict[str, Schema]:
    found = webhooks()
    for name, methods in found.items():
        for described in methods.values():
            add_examples(described, examples.get(name, {}))
    return found
