"""A mutant: one mistake in the core, made by changing its text, and the test that finds it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.simulation.fault_simulation import Theme


@dataclass(frozen=True)
class Mutant:
    """One mistake: its description, and the changed text of the core.

    Attributes:
        theme: the users' main activity in the runs that look for it.
        in_two_regions: whether the runs have a second Region that takes over.
        subject: its subject: the name of its module.
        pairs: the pairs of operations that find it, as `make pairs ONLY=` names them; otherwise the simulation looks
            for it.
        test: the test that finds it, as pytest names it, if neither simulation nor pairs do.
        also: other changes in the same file, if one condition follows the other.
    """

    name: str
    file: str
    old: str
    new: str
    theme: Theme | None = None
    in_two_regions: bool = False
    also: tuple[tuple[str, str], ...] = ()
    subject: str = ""
    pairs: str = ""
    test: str = ""

    def applied(self, text: str) -> str:
        """A file's text with the mistake in it."""
        for old, new in ((self.old, self.new), *self.also):
            if old not in text:
                raise LookupError(f"mutant {self.name!r}: {self.file} has changed, and so must the mutant")
            text = text.replace(old, new, 1)
        return text
