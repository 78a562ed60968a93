"""The AsyncAPI document for the WebSocket, generated from the message models."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from pydantic import TypeAdapter

from duetime.contract.http.operation import CONTRACT_VERSION
from duetime.contract.live_updates.messages import FRAMES, MESSAGES
from duetime.contract.openapi.descriptions import described

if TYPE_CHECKING:
    from collections.abc import Iterable

Schema = dict[str, Any]
Mode = Literal["validation", "serialization"]
_CHANNEL = "live"
_SCHEMAS = "#/components/schemas/{model}"


def document() -> Schema:
    """The complete document, which is the same for all deployments."""
    sent = list(MESSAGES.values())
    models: list[tuple[str, Mode, TypeAdapter[Any]]] = [
        *((model.__name__, "validation", TypeAdapter(model)) for model in sent),
        *((model.__name__, "serialization", TypeAdapter(model)) for model in FRAMES),
    ]
    _, schemas = TypeAdapter.json_schemas(models, ref_template=_SCHEMAS)
    names = [name for name, _, _ in models]
    return {
        "asyncapi": "3.0.0",
        "info": {
            "title": "duetime live updates",
            "version": CONTRACT_VERSION,
            "description": "Changes to tasks and schedules as they happen. `POST /v1/watch-tickets` of the REST API "
            "returns the URL and a ticket, which opens one connection. Later versions may add message kinds and "
            "fields, so ignore unknown kinds and fields.",
            "license": {"name": "Apache-2.0"},
        },
        "servers": {
            "deployment": {"host": "{host}", "pathname": "/live", "protocol": "wss", "variables": {"host": {}}},
        },
        "channels": {
            _CHANNEL: {
                "address": "/",
                "bindings": {
                    "ws": {
                        "query": {
                            "type": "object",
                            "properties": {"ticket": {"type": "string", "description": "The ticket."}},
                            "required": ["ticket"],
                        }
                    }
                },
                "messages": {name: {"$ref": f"#/components/messages/{name}"} for name in names},
            }
        },
        "operations": {
            "send": _operation("receive", "Messages that clients send.", [model.__name__ for model in sent]),
            "receive": _operation("send", "Messages that clients receive.", [model.__name__ for model in FRAMES]),
        },
        "components": {
            "messages": {name: {"name": name, "payload": {"$ref": _SCHEMAS.format(model=name)}} for name in names},
            "schemas": {name: described(schema) for name, schema in schemas["$defs"].items()},
        },
    }


def _operation(action: str, summary: str, names: Iterable[str]) -> Schema:
    """An AsyncAPI operation that sends or receives some messages, described from the server's point of view."""
    return {
        "action": action,
        "summary": summary,
        "channel": {"$ref": f"#/channels/{_CHANNEL}"},
        "messages": [{"$ref": f"#/channels/{_CHANNEL}/messages/{name}"} for name in names],
    }
