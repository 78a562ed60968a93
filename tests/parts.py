"""A part of what takes too long to run as a whole each time: `3/10`, or `commit/10` for the commit's own part.

A name alone decides its part; as commits follow each other, CI runs all parts.
"""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Iterable


@dataclass(frozen=True, slots=True)
class Part:
    """One of this many parts, counted from 1."""

    number: int
    parts: int

    def has(self, name: str) -> bool:
        """Whether something of this name is in the part."""
        return int.from_bytes(sha256(name.encode()).digest()[:8]) % self.parts == self.number - 1

    def __str__(self) -> str:
        return f"{self.number}/{self.parts}"


ALL = Part(1, 1)


def others_slow(parameters: Iterable[Any]) -> list[Any]:
    """Parameters of a slow test: `make test` runs the first one, `make test-slow` the others."""
    first, *others = parameters
    rows = [each if isinstance(each, tuple) else (each,) for each in others]
    return [first, *(pytest.param(*row, marks=pytest.mark.slow) for row in rows)]


def read_part(text: str) -> Part:
    """The part that an option names.

    Raises:
        ValueError: It names none.
    """
    if (by_commit := re.fullmatch(r"commit/([1-9]\d*)", text)) is not None:
        return part_of_commit(_checked_out(), int(by_commit[1]))
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise ValueError(f"{text} is no part such as 3/10 or commit/10")
    return Part(int(match[1]), int(match[2]))


def part_of_commit(commit: str, parts: int) -> Part:
    """The part that is run for a commit, by its hash."""
    return Part(int(commit, 16) % parts + 1, parts)


def _checked_out() -> str:
    head = ["git", "rev-parse", "HEAD"]
    said = subprocess.run(head, cwd=Path(__file__).parent, capture_output=True, text=True, check=True)  # noqa: S603 - git
    return said.stdout.strip()
