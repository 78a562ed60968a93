"""Defects that the fault simulation, the pairs of operations or a test must find, by subject."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from tests.simulation.fault_simulation import Theme
from tests.simulation.mutations import (
    approvals,
    attempts,
    batches,
    bulk,
    consumers,
    dispatch,
    jobs,
    keys,
    locks,
    rates,
    regions,
    requests,
    schedules,
    topologies,
)

if TYPE_CHECKING:
    from types import ModuleType

_BY_THEME: dict[Theme, tuple[ModuleType, ...]] = {
    Theme.TASKS: (attempts, locks, dispatch, requests, batches, keys, bulk, rates, consumers),
    Theme.SCHEDULES: (schedules,),
    Theme.TOPOLOGIES: (topologies, approvals),
    Theme.JOBS: (jobs,),
}
MUTANTS = (
    *(
        replace(mutant, theme=mutant.theme or theme, subject=module.__name__.rpartition(".")[2])
        for theme, modules in _BY_THEME.items()
        for module in modules
        for mutant in module.MUTANTS
    ),
    *(replace(mutant, in_two_regions=True, subject="regions") for mutant in regions.MUTANTS),
)
