"""Composes the carrying out of bulk operations."""

from __future__ import annotations

from functools import cached_property

from duetime.composition.core import CoreServices
from duetime.composition.filter_actions import FilterActionServices
from duetime.composition.root import Part
from duetime.composition.topologies import TopologyServices
from duetime.services.bulk.executor import BulkExecutor
from duetime.services.topologies.bulk_node_actions import TopologySteps


class BulkExecutorServices(Part):
    """Carrying out bulk operations."""

    @cached_property
    def executor(self) -> BulkExecutor:
        """Carries out bulk operations."""
        topologies = self.part(TopologyServices)
        return BulkExecutor(
            store=self.part(CoreServices).stores.bulk,
            runtime=self.runtime,
            filter_steps=self.part(FilterActionServices).requests,
            topology_steps=TopologySteps(topologies.outlines, topologies.reconciler, topologies.node_eraser),
        )
