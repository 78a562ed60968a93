"""What a mutant is: one mistake in the core, made by changing its text, and who finds it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.simulation.fault_simulation import Theme


@dataclass(frozen=True)
class Mutant:
    """One mistake: what it is, and where the text of the core changes.

    Attributes:
        theme: what the users are busy with in the runs that look for it.
        in_two_regions: whether the runs have a second Region that takes over.
        subject: what it is about: the name of its module.
        pairs: the pairs of operations that find it, as `make pairs ONLY=` names them; else the simulation looks for it.
        test: the test that finds it, as pytest names it, if neither simulation nor pairs do.
        also: what else changes in the same file, where one condition stands behind the other.
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
