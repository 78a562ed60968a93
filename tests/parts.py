"""Splits a test suite that takes too long into parts such as `3/10`, or `commit/10` for the commit's own part.

A name always has the same part, and CI runs all parts over many commits.
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
    """One part of a suite, with its number, counted from 1, and the total number of parts."""

    number: int
    parts: int

    def has(self, name: str) -> bool:
        """Return whether the part includes this name."""
        return int.from_bytes(sha256(name.encode()).digest()[:8]) % self.parts == self.number - 1

    def __str__(self) -> str:
        return f"{self.number}/{self.parts}"


ALL = Part(1, 1)


def others_slow(parameters: Iterable[Any]) -> list[Any]:
    """Return a slow test's parameters so that `make test` uses only the first and `make test-slow` uses the others."""
    first, *others = parameters
    rows = [each if isinstance(each, tuple) else (each,) for each in others]
    return [first, *(pytest.param(*row, marks=pytest.mark.slow) for row in rows)]


def read_part(text: str) -> Part:
    """Return the part that an option names.

    Raises:
        ValueError: The option names no part.
    """
    if (by_commit := re.fullmatch(r"commit/([1-9]\d*)", text)) is not None:
        return part_of_commit(_checked_out(), int(by_commit[1]))
    match = re.fullmatch(r"(\d+)/(\d+)", text)
    if match is None or not 1 <= int(match[1]) <= int(match[2]):
        raise ValueError(f"{text} is no part such as 3/10 or commit/10")
    return Part(int(match[1]), int(match[2]))


def part_of_commit(commit: str, parts: int) -> Part:
    """Return the part that is run for a commit, by the commit's hash."""
    return Part(int(commit, 16) % parts + 1, parts)


def _checked_out() -> str:
    head = ["git", "rev-parse", "HEAD"]
    said = subprocess.run(head, cwd=Path(__file__).parent, capture_output=True, text=True, check=True)  # noqa: S603 - git
    return said.stdout.strip()
