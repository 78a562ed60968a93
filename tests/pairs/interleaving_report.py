"""Describes an interleaving that violated an invariant, with its calls in order and the command that repeats it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.pairs.exploring import Found


def told(found: Found) -> str:
    """The run, its outcome, and the command that repeats the run."""
    pair, result = found.interleaving.pair, found.result
    outcomes = [
        f"{name} ({operation.name}): " + ("not run" if outcome is None else "/".join(outcome) or "done")
        for name, operation, outcome in zip("AB", (pair.first, pair.second), result.outcomes, strict=True)
    ]
    lines = [f"{pair.subject.name}: " + ", ".join(outcomes)]
    lines += [f"  VIOLATION {violation}" for violation in found.violations]
    lines += [f"  {at:>6} ms {name} {what}" for at, name, what in result.made]
    lines.append(f"  again: make pairs AGAIN='{found.interleaving}'")
    return "\n".join(lines)
