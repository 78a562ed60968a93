"""Mistakes that the fault simulation must find, by what they are about."""

from __future__ import annotations

from dataclasses import replace

from tests.simulation.fault_simulation import Theme
from tests.simulation.mutations import attempts, dispatch, jobs, locks, regions, requests, schedules, topologies

_BY_THEME = {
    Theme.TASKS: (*attempts.MUTANTS, *locks.MUTANTS, *dispatch.MUTANTS, *requests.MUTANTS),
    Theme.SCHEDULES: schedules.MUTANTS,
    Theme.TOPOLOGIES: topologies.MUTANTS,
    Theme.JOBS: jobs.MUTANTS,
}
MUTANTS = (
    *(replace(mutant, theme=theme) for theme, mutants in _BY_THEME.items() for mutant in mutants),
    *(replace(mutant, in_two_regions=True) for mutant in regions.MUTANTS),
)
