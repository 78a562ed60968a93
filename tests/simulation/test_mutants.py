"""A test of the deliberate defects that the simulation must find."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.simulation.mutants import CORE
from tests.simulation.mutations import MUTANTS

if TYPE_CHECKING:
    from tests.simulation.mutations.mutant import Mutant


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_the_text_that_a_defect_replaces_occurs_exactly_once(mutant: Mutant) -> None:
    """The text that a defect replaces occurs exactly once in its module, so the list of defects fits the code."""
    text = (CORE / mutant.file).read_text()
    assert text.count(mutant.old) == 1
    assert mutant.applied(text) != text
