"""The results of its parents that a node is given: fetched when it starts, stored nowhere twice.

A node names in `inputs` the parents whose results it wants, and is given one object: `{"parent": result}`. A parent
that has no result, because it failed or was skipped, gives `null`.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime.domain.limits import MAX_INPUTS_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from duetime.domain.ids import TaskId
    from duetime.domain.topologies.graph import Node

_NOTHING = b"null"


class InputsTooLarge(Exception):
    """The results that a node asks for are larger together than a node may be given; trying again does not help."""

    def __init__(self, sizes: Mapping[str, int]) -> None:
        largest = max(sizes, key=sizes.__getitem__)
        super().__init__(
            f"the inputs have at least {sum(sizes.values()) + 1} bytes, {MAX_INPUTS_BYTES} are allowed; "
            f"the largest is {largest!r} with {sizes[largest]}"
        )
        self.sizes = sizes


@dataclass(frozen=True, slots=True)
class Reference:
    """Where an input is found: the result of a task."""

    name: str
    task_id: TaskId


def references(node: Node, tasks: Mapping[str, TaskId]) -> tuple[Reference, ...]:
    """Where a node's inputs are found.

    Args:
        node: the node that is given them.
        tasks: the task of each parent: of this run, or of an earlier one if it was not repeated.
    """
    return tuple(Reference(name, tasks[name]) for name in node.inputs)


def assembled(results: Iterable[tuple[str, bytes | None]]) -> bytes:
    """The inputs as one JSON object in UTF-8, made of results that are JSON in UTF-8 themselves.

    Raises:
        InputsTooLarge: they have too many bytes together. An iterable is read no further than that.
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
