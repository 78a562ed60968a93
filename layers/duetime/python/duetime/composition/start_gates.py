"""Composes what may keep a due task from beginning."""

from __future__ import annotations

from functools import cached_property

from duetime.adapters.targets.python_handlers import HandlersPackage
from duetime.composition.deferred_schedules import overlap_control
from duetime.composition.root import Part
from duetime.composition.switches import SwitchServices
from duetime.services.start_gates import ApprovalGate, StartGates
from duetime.services.worker.attempt import HandlerAvailability


class StartGateServices(Part):
    """Keeping tasks from beginning: for an operator, for their broken handler, or for their schedule."""

    @cached_property
    def gates(self) -> StartGates:
        """All gates, in the order in which they are asked."""
        of_all = (self.part(SwitchServices).gate, self.handler_availability, ApprovalGate(self.runtime.clock))
        return StartGates(of_all, of_occurrences=overlap_control(self))

    @cached_property
    def handler_availability(self) -> HandlerAvailability:
        """Whether the handlers of tasks can be called."""
        return HandlerAvailability(self.handlers_package, self.runtime)

    @cached_property
    def handlers_package(self) -> HandlersPackage:
        """The user's package of handlers."""
        return HandlersPackage(self.settings.handlers, self.runtime.clock)
