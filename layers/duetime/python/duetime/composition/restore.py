"""Composes the takeover of a restored table, for the command `duetime restore`; no function uses it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from duetime.adapters.dynamodb.restore import DynamoRecords, DynamoTableRestore
from duetime.adapters.runtime import garbage_collection
from duetime.composition import Composition, Platform
from duetime.composition.core import CoreServices
from duetime.environment_variables import Variable
from duetime.services.restore import Restore
from duetime.services.switch_admin import SwitchAdmin

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from duetime.domain.restore import AfterRestore
    from duetime.ports.restore import TableRestore


def table_restore() -> TableRestore:
    """Restores tables of the account."""
    return DynamoTableRestore(Platform().clients.dynamodb())


def restore_of(
    table: str,
    replaced: str,
    bucket: str,
    epoch: int,
    after: AfterRestore,
    report: Callable[[Mapping[str, str]], None],
    platform: Platform | None = None,
) -> Restore[DynamoRecords]:
    """The takeover of a restored table.

    Args:
        table: name of the restored table.
        replaced: name of the table that it replaces; empty if it is lost.
        bucket: name of the deployment's bucket of contents.
        epoch: the new epoch.
        after: what happens to tasks that had run.
        report: called with each task that changed after the restore point.
        platform: clients, clock and more; those of this process by default.
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
        runtime=composition.runtime,
        after=after,
        report=report,
    )
