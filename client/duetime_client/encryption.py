"""Encrypts the payloads and results of requests, and decrypts those of responses, with the codec of a client."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from duetime_common.payload_codecs import decrypted_within, encrypted, is_encrypted, json_of_bytes

if TYPE_CHECKING:
    import httpx

    from duetime_common.payload_codecs import PayloadCodec

_ENCRYPTED = frozenset({"payload", "result"})
_PARTS = frozenset({"tasks", "task", "nodes", "node", "update", "on_complete"})
"""Fields of requests with tasks in them."""
_OF_THE_CONTENT = frozenset({"content-encoding", "content-length", "transfer-encoding"})


def encrypted_body(codec: PayloadCodec, body: Any) -> Any:  # noqa: ANN401 - any JSON
    """A request's body whose payloads and results are encrypted, except graphs, which duetime has to read."""
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
    return found


def decrypted_response(codec: PayloadCodec, response: httpx.Response) -> httpx.Response:
    """A response whose payloads and results are decrypted; one that is not JSON is unchanged."""
    try:
        document = response.json()
    except ValueError:
        return response
    headers = [(name, value) for name, value in response.headers.items() if name.lower() not in _OF_THE_CONTENT]
    content = json.dumps(decrypted_within(codec, document)).encode()
    # Another response cannot be imported here: the session is, before httpx.
    return type(response)(response.status_code, headers=headers, content=content, request=response.request)


def _stays(value: object) -> bool:
    """Whether there is nothing to encrypt: no value, an encrypted one, or the name of an upload."""
    return value is None or is_encrypted(value) or (isinstance(value, dict) and value.keys() == {"$upload"})
