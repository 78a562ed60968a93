"""Converts recorded workflows (graphs of programs with durations) to topologies.

```json
{"name": "montage", "nodes": [{"id": "mProject_1", "program": "mProject", "runtime_s": 534.058, "parents": []}]}
```

Each node becomes a task with the payload `{"seconds": ..., "program": ...}`.
"""

from __future__ import annotations

import math
from typing import Any

from duetime_client.errors import InvalidField
from duetime_client.topology_validation import TopologyInvalid

MAX_SECONDS = 800
"""Longest duration of a node in seconds; an attempt can take 840 s, including its start and end."""
_USUAL_TIMEOUT = 60
_TIME_TO_SPARE = 30
_NAME_LENGTH = 128
_BEYOND_ANY = 1e12


def is_workflow(document: object) -> bool:
    """Whether the document is a recorded workflow, whose nodes are a list; the nodes of a topology are an object."""
    return isinstance(document, dict) and isinstance(document.get("nodes"), list)


def body_of_workflow(document: dict[str, Any], task_type: str, time_scale: float) -> dict[str, Any]:
    """Convert a workflow to the body of `POST /v1/topologies`.

    Args:
        document: the workflow.
        task_type: the type of each node's task.
        time_scale: the factor for recorded durations.

    Raises:
        TopologyInvalid: `time_scale` is not above 0, or a node is incomplete, duplicated, or would run for too long.
    """
    if not (math.isfinite(time_scale) and time_scale > 0):
        raise TopologyInvalid([InvalidField("time_scale", "should be a number above 0")])
    nodes: dict[str, Any] = {}
    for number, recorded in enumerate(document["nodes"]):
        key, node = _node(f"nodes[{number}]", recorded, task_type, time_scale)
        if key in nodes:
            raise TopologyInvalid([InvalidField(f"nodes[{number}].id", f"is {key!a}, the id of an earlier node")])
        nodes[key] = node
    name = document.get("name")
    return {**({"name": name[:_NAME_LENGTH]} if isinstance(name, str) else {}), "nodes": nodes}


def _node(place: str, recorded: object, task_type: str, time_scale: float) -> tuple[str, dict[str, Any]]:
    match recorded:
        case {
            "id": str(key),
            "program": str(program),
            "runtime_s": int() | float() as runtime,
            "parents": list(parents),
        }:
            pass
        case _:
            raise TopologyInvalid(
                [InvalidField(place, "should have an id, a program, runtime_s and a list of parents")]
            )
    # Python cannot convert an integer that is far beyond this bound to a float.
    seconds = round(runtime * time_scale, 3) if abs(runtime) < _BEYOND_ANY else _BEYOND_ANY
    if not 0 <= seconds <= MAX_SECONDS:
        reason = f"is {seconds:g} s at this time_scale; 0 to {MAX_SECONDS} s are allowed"
        raise TopologyInvalid([InvalidField(f"{place}.runtime_s", reason)])
    node: dict[str, Any] = {
        "type": task_type,
        "payload": {"seconds": seconds, "program": program},
        "expected_seconds": seconds,
    }
    if seconds + _TIME_TO_SPARE > _USUAL_TIMEOUT:
        node["timeout_seconds"] = math.ceil(seconds) + _TIME_TO_SPARE
    if parents:
        node["depends_on"] = parents
    return key, node
