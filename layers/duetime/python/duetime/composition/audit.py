"""Composes the audit log."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from duetime.composition import Part
from duetime.domain.times import to_iso

if TYPE_CHECKING:
    from duetime.ports.stores import AuditLog


class AuditServices(Part):
    """The audit log."""

    @cached_property
    def log(self) -> AuditLog:
        """The log of this process."""
        from duetime.adapters.audit_log import CloudWatchAuditLog

        day = to_iso(self.runtime.now())[:10].replace("-", "/")
        stream = f"{day}/{self.runtime.nonce()}"
        return CloudWatchAuditLog(self.platform.clients.logs(), self.settings.audit_log_group, stream)
