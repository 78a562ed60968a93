"""The complete OpenAPI document, in general or for one deployment."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duetime.contract.http import problems
from duetime.contract.http.routes import CONTRACT_VERSION, OPERATIONS
from duetime.contract.openapi.names import Schema, reference
from duetime.contract.openapi.operations import parameters, responses, shared_responses
from duetime.contract.openapi.schemas import schemas
from duetime.contract.openapi.webhooks import WEBHOOKS, webhooks
from duetime.contract.tasks.actions import OPTIONAL_BODIES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from duetime.contract.http.operation import Operation
    from duetime.domain.callers import Role


KEY = "key"
"""The scheme of API keys."""
ANY = "any"
"""Independent of a deployment: includes all ways to authenticate."""
_SCHEMES: Mapping[str, Schema] = {
    "sigv4": {
        "type": "apiKey",
        "name": "Authorization",
        "in": "header",
        "description": "AWS Signature Version 4; the owner is the IAM user, or the role for all of its sessions. The "
        "settings give the roles of the API to identities.",
        "x-amazon-apigateway-authtype": "awsSigv4",
    },
    "bearer": {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "JWT",
        "description": "A JWT of the deployment's issuer; the owner is its `sub` claim. Scopes such as "
        "`duetime:reader` limit the caller to the role that they name.",
    },
    KEY: {
        "type": "http",
        "scheme": "bearer",
        "bearerFormat": "API key",
        "description": "An API key of the deployment, whose owner and roles the request has. The path begins with "
        "`/key/v1` instead of `/v1`.",
    },
}
_ACCEPTED: Mapping[str, tuple[str, ...]] = {ANY: tuple(_SCHEMES), "iam": ("sigv4",), "jwt": ("bearer",), "none": ()}
# The document is at /v1/openapi.json behind any prefix, and its paths start with /v1.
SERVERS: list[Schema] = [{"url": "..", "description": "The deployment that serves this document."}]


_WITH_KEY: Schema = {"url": "../key", "description": "The same deployment, for requests with an API key."}


@dataclass(frozen=True, slots=True)
class Access:
    """How callers authenticate.

    Attributes:
        authentication: of a deployment: `iam`, `jwt` or `none`; `ANY` for all ways.
        keys: whether the deployment accepts API keys besides.
    """

    authentication: str = ANY
    keys: bool = False

    @property
    def schemes(self) -> Sequence[str]:
        """The names of the ways to authenticate; empty without authentication."""
        known = _ACCEPTED[self.authentication]
        return (*known, KEY) if self.keys and known and KEY not in known else known

    @property
    def servers(self) -> list[Schema]:
        """The addresses of the deployment."""
        return [*SERVERS, _WITH_KEY] if self.keys and self.schemes else SERVERS

    def security(self, role: Role | None = None) -> list[Schema]:
        """The alternatives of authentication for a request, with the role that it needs."""
        return [{scheme: [role.value] if role else []} for scheme in self.schemes]


FILE = Path(__file__).with_name("examples.json")


def recorded() -> dict[str, Any]:
    """The recorded requests and responses of each operation, and a problem of each code."""
    found: dict[str, Any] = json.loads(FILE.read_text(encoding="utf-8"))
    return found


def problem_examples(of: Mapping[str, Any]) -> dict[str, Schema]:
    """A problem of each code, for references from responses; unrecorded ones have only the values of their kind."""
    kinds = {kind.code: kind for kind in (*problems.rest_kinds().values(), problems.INTERNAL)}
    found = {code: of["problems"].get(code) or _bare(kind) for code, kind in kinds.items()}
    return {code: {"summary": problem["title"], "value": problem} for code, problem in sorted(found.items())}


def _bare(kind: problems.Kind) -> problems.Problem:
    return problems.Problem(
        type=f"urn:duetime:problem:{kind.code}",
        title=kind.title,
        status=kind.status.value,
        detail=kind.title,
        instance="urn:duetime:request:request",
        code=kind.code,
        errors=[],
    )


def add_examples(operation: Schema, examples: Mapping[str, Any]) -> None:
    """Adds examples to a described operation.

    Args:
        operation: its description in the document.
        examples: bodies of its `request` and `responses`, by media type and by status.
    """
    for media_type, body in examples.get("request", {}).items():
        operation["requestBody"]["content"][media_type]["example"] = body
    for status, body in examples.get("responses", {}).items():
        content = operation["responses"].get(status, {}).get("content", {})
        if "application/json" in content:
            content["application/json"]["example"] = body


TAGS: Mapping[str, str] = {
    "tasks": "Work with a due time: create, read, update, control and report on tasks.",
    "bulk operations": "Actions on all tasks that match a filter, carried out in the background.",
    "schedules": "Recurring work: each occurrence is a task.",
    "calendars": "Named sets of times in which schedules run, or do not run.",
    "topologies": "Graphs of tasks that run as one task.",
    "locks": "Named resources that only a limited number of running tasks can hold.",
    "leases": "Leases on tasks, for your own workers that pull their work.",
    "switches": "Stop or limit the dispatch of a type, of an owner or of all tasks.",
    "links": "Links with which people without credentials decide or report on one task.",
    "keys": "API keys, with which programs call the API.",
    "live updates": "Changes of tasks and schedules as they happen, over a WebSocket.",
    "service": "The API itself: its entry point, its health and this document.",
    WEBHOOKS: "Requests that the scheduler sends to your URLs.",
}
_OF_ANOTHER = {
    "dead-letters": "tasks",
    "uploads": "tasks",
    "purges": "bulk operations",
    "forecast": "schedules",
    "watch-tickets": "live updates",
    "signing-secrets": "service",
    "signing-keys": "service",
    "health": "service",
    "openapi.json": "service",
}


def tag_of(operation: Operation) -> str:
    """The tag of an operation: the first part of its path after the version, unless it belongs to another tag."""
    parts = operation.path.split("/")
    subject = "links" if "links" in parts else [*parts[2:], ""][0]
    name = _OF_ANOTHER.get(subject, subject.replace("-", " "))
    return name if name in TAGS else "service"


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
def document(authentication: str = ANY, *, keys: bool = False) -> Schema:
    """The complete document; it is built once and shared, so it must not be changed.

    Args:
        authentication: of the deployment; by default, all supported ones.
        keys: whether the deployment accepts API keys besides.
    """
    access = Access(authentication, keys)
    examples = recorded()
    paths: dict[str, Schema] = {}
    for operation in OPERATIONS:
        described = _operation(operation, access, examples["operations"])
        paths.setdefault(operation.path, {})[operation.method.lower()] = described
    return {
        "openapi": "3.1.0",
        "info": _INFO,
        "servers": access.servers,
        "security": access.security(),
        "tags": [{"name": name, "description": text} for name, text in TAGS.items()],
        "paths": paths,
        "webhooks": _webhooks(examples["webhooks"]),
        "components": {
            "schemas": schemas(),
            "responses": shared_responses(),
            "examples": problem_examples(examples),
            "securitySchemes": {scheme: _SCHEMES[scheme] for scheme in access.schemes},
        },
    }


def _operation(operation: Operation, access: Access, examples: Mapping[str, Any]) -> Schema:
    described: Schema = {
        "operationId": operation.id,
        "summary": operation.summary,
        "description": operation.description or operation.summary,
        "tags": [tag_of(operation)],
        "parameters": parameters(operation),
        "responses": responses(operation),
    }
    if operation.body is not None:
        content: Schema = {"application/json": {"schema": reference(operation.body)}}
        content |= {media_type: {"schema": {"type": "string"}} for media_type in operation.body_types}
        described["requestBody"] = {"required": not issubclass(operation.body, OPTIONAL_BODIES), "content": content}
    if operation.is_question:
        # For read-only tools, because the method does not show whether an operation is safe.
        described["x-read-only"] = True
    described["security"] = [] if operation.is_public else access.security(operation.needs)
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
