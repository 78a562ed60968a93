"""Composes the archive of ended tasks."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from duetime.adapters.archive_bucket import ArchiveBucket
from duetime.adapters.content_store import SplitContentStore
from duetime.adapters.dynamodb.stream import removed_batch
from duetime.composition.root import Part
from duetime.contract.archive.lines import JsonLines
from duetime.services.archiver import TaskArchiver

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from duetime.domain.archive_objects import RemovedBatch


class ArchiveServices(Part):
    """Copies removed records to the archive."""

    @cached_property
    def archiver(self) -> TaskArchiver:
        """Writes removed tasks to the archive."""
        clients, settings = self.platform.clients, self.settings
        s3 = clients.s3()
        # Contents in S3 are not copied, so this store never needs its S3 client.
        contents = SplitContentStore(clients.dynamodb(), settings.table, s3, bucket="")
        return TaskArchiver(ArchiveBucket(s3, settings.archive_bucket), JsonLines(), contents, self.runtime)

    def removed(self, event: Mapping[str, Any]) -> RemovedBatch:
        """The removed records in a Lambda event from the table's stream."""
        return removed_batch(event, self.runtime.telemetry)
