"""Reads a topology from a file, and validates it before it is sent.

A file contains JSON, which is either the body of `POST /v1/topologies` itself:

```json
{"name": "nightly", "on_failure": "stop",
 "nodes": {"fetch": {"type": "fetch"}, "report": {"type": "report", "depends_on": ["fetch"], "inputs": ["fetch"]}}}
```

or a recorded workflow, a list of nodes with their recorded durations (see `recorded_workflows.py`).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duetime_client.errors import InvalidField
from duetime_client.recorded_workflows import body_of_workflow, is_workflow
from duetime_client.topology_validation import TopologyInvalid, validate_topology
from duetime_common.limits import MAX_BODY_BYTES, MAX_JSON_DEPTH

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["TopologyInvalid", "read_topology", "validate_topology"]

_MAX_FILE_BYTES = 8 * MAX_BODY_BYTES
"""A file can be larger than the request, because it can contain whitespace and other recorded data."""


def read_topology(path: Path | str, *, task_type: str = "sleep", time_scale: float = 1.0) -> dict[str, Any]:
    """Read and check a file.

    Args:
        path: the file.
        task_type: the type of the tasks of a recorded workflow.
        time_scale: the factor for recorded durations.

    Returns:
        The body of `POST /v1/topologies`.

    Raises:
        TopologyInvalid: the file is not a valid topology.
        OSError: the file cannot be read.
    """
    document = _parsed(_content(Path(path)))
    body = body_of_workflow(document, task_type, time_scale) if is_workflow(document) else document
    validate_topology(body)
    if (size := len(json.dumps(body))) > MAX_BODY_BYTES:
        raise _refusal(f"has {size} bytes as a request; {MAX_BODY_BYTES} are allowed")
    return body


def _content(path: Path) -> bytes:
    with path.open("rb") as file:
        data = file.read(_MAX_FILE_BYTES + 1)
    if len(data) > _MAX_FILE_BYTES:
        raise _refusal(f"has more than {_MAX_FILE_BYTES} bytes")
    return data


def _parsed(data: bytes) -> Any:  # noqa: ANN401 - any JSON
    if not data.strip():
        raise _refusal("is empty")
    try:
        document = json.loads(data, object_pairs_hook=_object, parse_constant=_reject_constant)
    except RecursionError:
        raise _refusal("is nested too deeply") from None
    except TopologyInvalid:
        raise
    except ValueError as error:
        raise _refusal(f"is not JSON in UTF-8: {error}") from None
    if _is_deeper_than(document, MAX_JSON_DEPTH):
        raise _refusal(f"is nested deeper than {MAX_JSON_DEPTH} levels")
    return document


def _is_deeper_than(document: object, levels: int) -> bool:
    """Whether lists and objects are nested deeper than the limit."""
    here = [document]
    for _ in range(levels):
        here = [inner for outer in here for inner in _inside(outer)]
    return any(isinstance(inner, dict | list) for inner in here)


def _inside(value: object) -> Iterable[object]:
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _refusal(reason: str) -> TopologyInvalid:
    return TopologyInvalid([InvalidField("body", reason)])


def _object(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Build an object; duplicate names are rejected."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise _refusal(f"contains {name!a} twice in one object")
        found[name] = value
    return found


def _reject_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number")
