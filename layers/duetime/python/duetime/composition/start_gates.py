"""Composes the gates that keep a task from starting."""

from __future__ import annotations

from functools import cached_property

from duetime.adapters.targets.python_handlers import HandlersPackage
from duetime.composition.deferred_schedules import overlap_control
from duetime.composition.locks import SwitchServices
from duetime.composition.root import Part
from duetime.services.start_gates import ApprovalGate, HandlerAvailability, StartGates


class StartGateServices(Part):
    """Gates that keep tasks from starting: an operator, a broken handler, or a schedule."""

    @cached_property
    def gates(self) -> StartGates:
        """All gates, in order."""
        of_all = (self.part(SwitchServices).gate, self.handler_availability, ApprovalGate(self.runtime.clock))
        return StartGates(of_all, of_occurrences=overlap_control(self))

    @cached_property
    def handler_availability(self) -> HandlerAvailability:
        """Decides whether the handlers of tasks can be called."""
        return HandlerAvailability(self.handlers_package, self.runtime)

    @cached_property
    def handlers_package(self) -> HandlersPackage:
        """The user's package of handlers."""
        return HandlersPackage(self.settings.handlers, self.runtime.clock)
