"""Inputs are the parents' results that a node receives; they are fetched when the node starts and never stored twice.

A node lists in `inputs` the parents whose results it needs, and receives one object: `{"parent": result}`. If a parent
has no result because it failed or was skipped, its value is `null`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from duetime.domain.limits import MAX_INPUTS_BYTES
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from duetime.domain.ids import TaskId
    from duetime.domain.topologies.graph import Node

_NOTHING = b"null"


class InputsTooLarge(Exception):
    """A node's inputs are too large in total, so a retry would not help."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        largest = max(sizes, key=sizes.__getitem__)
        super().__init__(
            f"the inputs have at least {sum(sizes.values()) + 1} bytes, {MAX_INPUTS_BYTES} are allowed; "
            f"the largest is {largest!r} with {sizes[largest]}"
        )
        self.sizes = sizes


@frozen
class Reference:
    """Reference to an input, which is the result of a task."""

    name: str
    task_id: TaskId


def references(node: Node, tasks: Mapping[str, TaskId]) -> tuple[Reference, ...]:
    """References to the inputs of a node.

    Args:
        node: the node that receives the inputs.
        tasks: the task of each parent, from this run, or from an earlier run if this run did not repeat the parent.
    """
    return tuple(Reference(name, tasks[name]) for name in node.inputs)


def assembled(results: Iterable[tuple[str, bytes | None]]) -> bytes:
    """Combines results, which are JSON in UTF-8, into one JSON object in UTF-8.

    Raises:
        InputsTooLarge: the total size is too large; the rest of the iterable is not read.
    """
    parts: list[bytes] = []
    sizes: dict[str, int] = {}
    for name, result in results:
        part = json.dumps(name, ensure_ascii=False).encode() + b":" + (result or _NOTHING)
        parts.append(part)
        sizes[name] = len(part) + 1
        if sum(sizes.values()) + 1 > MAX_INPUTS_BYTES:
            raise InputsTooLarge(sizes)
    return b"{" + b",".join(parts) + b"}"
