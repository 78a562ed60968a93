"""Composes the use cases of topology definitions."""

from __future__ import annotations

from functools import cached_property

from duetime.composition.core import CoreServices
from duetime.composition.root import Part
from duetime.services.topologies.definitions import TopologyDefinitions


class DefinitionServices(Part):
    """Keeping topology definitions, and making runs of them."""

    @cached_property
    def definitions(self) -> TopologyDefinitions:
        """Keeps topology definitions."""
        return TopologyDefinitions(self.part(CoreServices).stores, self.runtime)
