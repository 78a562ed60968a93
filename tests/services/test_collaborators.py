from __future__ import annotations

import importlib
import pkgutil
import re
from dataclasses import MISSING, Field, fields, is_dataclass
from inspect import getmembers, isclass
from typing import TYPE_CHECKING

import pytest

import duetime.ports
import duetime.services
from duetime.domain.tasks.attempt_results import Postponed, SkipCode, Skipped
from duetime.domain.tasks.task import ScheduleRef
from duetime.services.start_gates import StartGates
from tests.clocks import NOW
from tests.domain.factories import task

if TYPE_CHECKING:
    from types import ModuleType

    from duetime.domain.tasks.task import Task


def classes_of(package: ModuleType) -> dict[str, type]:
    """The classes that a package defines."""
    found = pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    modules = [importlib.import_module(each.name) for each in found]
    return {
        name: kind
        for module in modules
        for name, kind in getmembers(module, isclass)
        if kind.__module__ == module.__name__
    }


def is_given_any(kind: type, names: set[str]) -> bool:
    """Whether a class has a field of one of these types."""
    return any(names & set(re.findall(r"\w+", str(field.type))) for field in fields(kind))


def is_required(field: Field[object]) -> bool:
    """Whether a field has no default."""
    return field.default is MISSING and field.default_factory is MISSING


VALUES = {name: kind for name, kind in classes_of(duetime.services).items() if is_dataclass(kind)}
PORTS = {name for name, kind in classes_of(duetime.ports).items() if getattr(kind, "_is_protocol", False)}
PORTS |= {"Runtime", "Callable"}
USE_CASES = {name: kind for name, kind in VALUES.items() if is_given_any(kind, PORTS)}


@pytest.mark.parametrize("name", sorted(USE_CASES))
def test_collaborators_of_use_cases_have_no_defaults(name: str) -> None:
    """Collaborators of use cases have no defaults, so that no collaborator can be omitted."""
    optional = (field for field in fields(USE_CASES[name]) if field.init and not is_required(field))
    known = PORTS | USE_CASES.keys()
    assert [field.name for field in optional if known & set(re.findall(r"\w+", str(field.type)))] == []


class Gate:
    """A gate with the same verdict for every task, which counts its calls."""

    def __init__(self, answer: Postponed | Skipped | None) -> None:
        self.answer = answer
        self.asked = 0

    def held(self, _task: Task) -> Postponed | Skipped | None:
        """Count the call, and return the verdict."""
        self.asked += 1
        return self.answer


def gates(first: tuple[Gate, ...], further: Gate, *last: Gate) -> StartGates:
    """Gates of which one gate serves schedules, groups and ordered keys."""
    return StartGates(first, lambda: further, lambda: further, lambda: further, last)


def test_gates_after_the_first_holding_gate_are_not_called() -> None:
    """Gates after the first gate that holds a task are not called; if no gate holds the task, it starts."""
    open_, stopped, deleted = Gate(None), Gate(Postponed(NOW, "stopped")), Gate(Skipped("deleted", SkipCode.DELETED))
    occurrence = task(schedule_ref=ScheduleRef("nightly", 1, NOW))
    assert gates((open_, stopped), deleted, deleted).held(occurrence) == Postponed(NOW, "stopped")
    assert (open_.asked, stopped.asked, deleted.asked) == (1, 1, 0)
    assert gates((open_,), deleted, stopped).held(occurrence) == Skipped("deleted", SkipCode.DELETED)
    assert gates((open_,), open_, stopped).held(occurrence) == Postponed(NOW, "stopped")
    assert gates((open_,), open_, open_).held(occurrence) is None


def test_a_task_without_schedule_and_group_skips_their_gates() -> None:
    """A task without a schedule and a group starts without calling the gates for schedules and groups."""
    deleted = Gate(Skipped("deleted", SkipCode.DELETED))
    assert gates((Gate(None),), deleted).held(task()) is None
    assert deleted.asked == 0
