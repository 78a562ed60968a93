"""Encrypts what a client sends, and decrypts what it receives, with its codec."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from duetime_common.limits import MAX_TRACEBACK_LENGTH
from duetime_common.payload_codecs import encrypted, encrypted_text, is_encrypted, json_of_bytes

if TYPE_CHECKING:
    from collections.abc import Callable

    import httpx

    from duetime_common.payload_codecs import PayloadCodec

_ENCRYPTED = frozenset({"payload", "result", "checkpoint"})
_PARTS = frozenset({"tasks", "task", "nodes", "node", "update", "on_complete"})
"""Fields of requests with tasks in them."""
_OF_THE_CONTENT = frozenset({"content-encoding", "content-length", "transfer-encoding"})


def encrypted_body(codec: PayloadCodec, body: Any) -> Any:  # noqa: ANN401 - any JSON
    """A request's body whose payloads, results, checkpoints and texts about the work are encrypted.

    Graphs, which duetime has to read, types of errors and percentages stay plain.
    """
    if isinstance(body, list | tuple):
        return [encrypted_body(codec, each) for each in body]
    if not isinstance(body, dict):
        return body
    target = body.get("target")
    is_graph = isinstance(target, dict) and target.get("kind") == "topology"
    found = {}
    for name, value in body.items():
        if name in _ENCRYPTED and not is_graph and not _stays(value):
            found[name] = json_of_bytes(encrypted(codec, value))
        elif name == "nodes" and isinstance(value, dict):
            found[name] = {key: encrypted_body(codec, node) for key, node in value.items()}
        else:
            found[name] = encrypted_body(codec, value) if name in _PARTS else value
    return {**found, **_encrypted_texts(codec, body)}


def _encrypted_texts(codec: PayloadCodec, body: dict[str, Any]) -> dict[str, Any]:
    """The texts in reports about work: the message of progress or of an error, and a traceback."""
    match body:
        case {"percent": _, "message": str(message)}:
            return {"message": encrypted_text(codec, message)}
        case {"error": {"type": str(kind), "message": str(message)}}:
            found: dict[str, Any] = {"error": {"type": kind, "message": encrypted_text(codec, message)}}
        case _:
            return {}
    if raised := body.get("traceback"):
        found["traceback"] = encrypted_text(codec, raised, MAX_TRACEBACK_LENGTH, keeps_end=True)
    return found


def decrypted_response(readable: Callable[[Any], Any], response: httpx.Response) -> httpx.Response:
    """A response whose JSON is decrypted; one that is not JSON is unchanged."""
    try:
        document = response.json()
    except ValueError:
        return response
    headers = [(name, value) for name, value in response.headers.items() if name.lower() not in _OF_THE_CONTENT]
    content = json.dumps(readable(document)).encode()
    # This response cannot be imported here: the session is imported before httpx.
    return type(response)(response.status_code, headers=headers, content=content, request=response.request)


def _stays(value: object) -> bool:
    """Whether there is nothing to encrypt: no value, an encrypted one, or the name of an upload."""
    return value is None or is_encrypted(value) or (isinstance(value, dict) and value.keys() == {"$upload"})
