"""Reading a topology from a file, and checking it before it is sent.

A file is JSON, and either the body of `POST /v1/topologies` itself:

```json
{"name": "nightly", "on_failure": "stop",
 "nodes": {"fetch": {"type": "fetch"}, "report": {"type": "report", "depends_on": ["fetch"], "inputs": ["fetch"]}}}
```

or a recorded workflow, a list of nodes with the times that they once took (see `workflows.py`).
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from duetime_client.errors import InvalidField
from duetime_client.topology_faults import TopologyInvalid, validate_topology
from duetime_client.workflows import body_of_workflow, is_workflow

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["TopologyInvalid", "read_topology", "validate_topology"]


def read_topology(path: Path | str, *, task_type: str = "sleep", time_scale: float = 1.0) -> dict[str, Any]:
    """Read and check a file.

    Args:
        path: the file.
        task_type: what kind of task each node of a recorded workflow becomes.
        time_scale: what the recorded times are multiplied by.

    Returns:
        The body of `POST /v1/topologies`.

    Raises:
        TopologyInvalid: the file is no topology, or one that cannot be run.
        OSError: it cannot be read.
    """
    document = _parsed(Path(path).read_bytes())
    body = body_of_workflow(document, task_type, time_scale) if is_workflow(document) else document
    validate_topology(body)
    return body


def _parsed(data: bytes) -> Any:  # noqa: ANN401 - any JSON
    try:
        return json.loads(data, object_pairs_hook=_object, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as error:
        if isinstance(error, TopologyInvalid):
            raise
        reason = "is nested too deeply" if isinstance(error, RecursionError) else f"is not JSON in UTF-8: {error}"
        raise TopologyInvalid([InvalidField("body", reason)]) from None


def _object(pairs: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """An object of which no part is lost because another has the same name."""
    found: dict[str, Any] = {}
    for name, value in pairs:
        if name in found:
            raise TopologyInvalid([InvalidField("body", f"holds {name!a} twice in one object")])
        found[name] = value
    return found


def _refuse_constant(name: str) -> None:
    raise ValueError(f"{name} is not a number")
