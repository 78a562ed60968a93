"""Numbers with their nouns."""

from __future__ import annotations


def counted(number: int, noun: str, plural: str = "") -> str:
    """A number with its noun: `1 task`, `2 tasks`."""
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"
