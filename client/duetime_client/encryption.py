"""Encrypts a client's requests and decrypts the responses with the client's codec."""

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
"""Request fields that contain tasks."""
_OF_THE_CONTENT = frozenset({"content-encoding", "content-length", "transfer-encoding"})


def encrypted_body(codec: PayloadCodec, body: Any) -> Any:  # noqa: ANN401 - any JSON
    """Return a request body with encrypted payloads, results, checkpoints, messages and tracebacks.

    Graphs (which duetime has to read), error types and percentages are not encrypted.
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
    """Encrypt the strings in a report: the progress or error message, and the traceback."""
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
    """Return a response with its JSON decrypted; a response that is not JSON is returned unchanged."""
    try:
        document = response.json()
    except ValueError:
        return response
    headers = [(name, value) for name, value in response.headers.items() if name.lower() not in _OF_THE_CONTENT]
    content = json.dumps(readable(document)).encode()
    # The class is taken from the response, because this module must not import httpx.
    return type(response)(response.status_code, headers=headers, content=content, request=response.request)


def _stays(value: object) -> bool:
    """Whether a value needs no encryption: `None`, an encrypted value, or the id of an upload."""
    return value is None or is_encrypted(value) or (isinstance(value, dict) and value.keys() == {"$upload"})
