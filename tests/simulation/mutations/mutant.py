"""A mutant: one defect in the core, introduced by changing its text, and the test that finds the defect."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.simulation.fault_simulation import Theme


@dataclass(frozen=True)
class Mutant:
    """One defect: its description, and the changed text of the core.

    Attributes:
        theme: the users' main activity in the simulations that search for the defect.
        in_two_regions: whether the simulations have a second Region that takes over.
        subject: the subject of the defect, which is the name of its module.
        pairs: the pairs of operations that find the defect, in the form of `make pairs ONLY=`; otherwise, the
            simulation searches for the defect.
        test: the test that finds the defect, in pytest's form, if neither simulation nor pairs do.
        also: other changes in the same file, if the defect needs several changes.
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
        """Insert the defect into a file's text, and return the changed text."""
        for old, new in ((self.old, self.new), *self.also):
            if old not in text:
                raise LookupError(f"mutant {self.name!r}: {self.file} has changed, and so must the mutant")
            text = text.replace(old, new, 1)
        return text
