"""Use cases of topologies for parts where few tasks need them."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from duetime.composition.root import Part
    from duetime.composition.topologies import TopologyServices
    from duetime.services.topologies.reconciler import TopologyRollback


def topology_services(part: Part) -> TopologyServices:
    """The use cases of topologies, imported at first use."""
    from duetime.composition.topologies import TopologyServices

    return part.part(TopologyServices)


def topology_rollback(part: Part) -> TopologyRollback:
    """Rolls back topologies that are nodes of others."""
    from duetime.services.topologies.reconciler import TopologyRollback

    return TopologyRollback(topology_services(part).reconciler)
