"""Composes takeovers after a table is restored, or by another Region. Only `duetime` commands use this module."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import boto3
from botocore.exceptions import BotoCoreError

from duetime.adapters.aws_clients import Clients
from duetime.adapters.dynamodb.regions import DynamoRegionStore
from duetime.adapters.dynamodb.restore import DynamoRecords, DynamoTableRestore
from duetime.adapters.dynamodb.trigger_cursors import DynamoCursorStore, DynamoShardStore
from duetime.adapters.runtime import garbage_collection
from duetime.composition import Composition, Platform
from duetime.composition.core import CoreServices
from duetime.domain.errors import Unavailable
from duetime.environment_variables import Variable
from duetime.services.region_takeover import RegionSide, RegionTakeover
from duetime.services.restore import Restore
from duetime.services.switch_admin import SwitchAdmin
from duetime_common.frozen_classes import frozen

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from mypy_boto3_dynamodb import DynamoDBClient

    from duetime.domain.regions import ActiveRegion
    from duetime.domain.restore import AfterRestore
    from duetime.domain.times import Millis
    from duetime.ports.restore import TableRestore
    from duetime.ports.runtime import Clock


def table_restore() -> TableRestore:
    """Restores tables in the AWS account."""
    return DynamoTableRestore(Platform().clients.dynamodb())


def restore_of(  # noqa: PLR0913 - the tables, and what the operator has decided
    table: str,
    replaced: str,
    bucket: str,
    epoch: int,
    after: AfterRestore,
    report: Callable[[Mapping[str, str]], None],
    *,
    at: Millis,
    platform: Platform | None = None,
) -> Restore[DynamoRecords]:
    """Compose the takeover of a restored table.

    Args:
        table: name of the restored table.
        replaced: name of the table that the restored table replaces; empty if that table is lost.
        bucket: name of the deployment's bucket for contents.
        epoch: the new epoch.
        after: what to do with tasks that ran after the restore point.
        report: called with each task that changed after the restore point.
        at: the restore point, in milliseconds since 1970; 0 if it is not known.
        platform: the platform to use; by default, this process's platform.
    """
    garbage_collection.resume()
    base = platform or Platform()
    environ = {**base.environ, Variable.TABLE: table, Variable.BUCKET: bucket, Variable.EPOCH: str(epoch)}
    composition = Composition(replace(base, environ=environ))
    stores, client = composition.part(CoreServices).stores, base.clients.dynamodb()
    return Restore(
        restored=DynamoRecords(client, table),
        replaced=DynamoRecords(client, replaced) if replaced else None,
        contents=stores.contents,
        switches=SwitchAdmin(stores, composition.runtime),
        topologies=stores.topologies,
        runtime=composition.runtime,
        after=after,
        report=report,
        at=at,
    )


@frozen
class TwoRegions:
    """A deployment in two Regions.

    Attributes:
        names: the Regions, beginning with the Region that created the table.
        table: name of the table.
        bucket: name of the bucket for contents in the target Region.
        epoch: the setting `epoch`.
    """

    names: tuple[str, ...]
    table: str
    bucket: str
    epoch: int

    def other_than(self, region: str) -> str:
        """The other Region."""
        return next(each for each in self.names if each != region)


class _ClientsOfRegion(Clients):
    """Clients for one Region."""

    def __init__(self, region: str) -> None:
        super().__init__(boto3.Session(region_name=region))


def platform_in(region: str, clock: Clock) -> Platform:
    """The platform for a command that works in a Region."""
    return Platform(clients=_ClientsOfRegion(region), clock=clock)


def record_in(platform: Platform, table: str) -> ActiveRegion | None:
    """The record of the active Region, as stored in the platform's Region.

    Raises:
        Unavailable: DynamoDB in this Region does not respond.
    """
    try:
        return DynamoRegionStore(platform.clients.dynamodb(), table).read()
    except BotoCoreError as error:
        raise Unavailable(str(error)) from error


def takeover_of(
    deployment: TwoRegions,
    target: str,
    platforms: dict[str, Platform],
    *,
    is_forced: bool,
    drain: Millis,
) -> RegionTakeover:
    """Compose the takeover by a Region.

    Args:
        deployment: the two Regions.
        target: the Region that takes over.
        platforms: the platforms by Region; a forced takeover needs only the target's platform.
        is_forced: whether the other Region is left unchanged.
        drain: how long the other Region's attempts may continue, in milliseconds.
    """
    garbage_collection.resume()
    base, source = platforms[target], deployment.other_than(target)
    environ = {**base.environ, Variable.TABLE: deployment.table, Variable.BUCKET: deployment.bucket}
    composition = Composition(replace(base, environ={**environ, Variable.REGIONS: ""}))
    here = base.clients.dynamodb()
    stores = composition.part(CoreServices).stores
    # A forced takeover reads the source's items from their replicas in the target.
    there = here if is_forced else platforms[source].clients.dynamodb()
    return RegionTakeover(
        target=_side(deployment, target, here, here, composition),
        source=_side(deployment, source, there, here, composition),
        contents=stores.contents,
        topologies=stores.topologies,
        runtime=composition.runtime,
        least_epoch=deployment.epoch,
        is_forced=is_forced,
        drain=drain,
    )


def _side(
    deployment: TwoRegions, name: str, client: DynamoDBClient, for_cursors: DynamoDBClient, composition: Composition
) -> RegionSide:
    suffix = "" if name == deployment.names[0] else name
    telemetry, table = composition.telemetry, deployment.table
    return RegionSide(
        name,
        DynamoRegionStore(client, table),
        DynamoRecords(client, table),
        DynamoCursorStore(for_cursors, table, telemetry, suffix),
        DynamoShardStore(for_cursors, table),
    )
