"""The quotas of owners, as one process knows them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from duetime.domain.errors import RecordUnreadable, Unavailable
from duetime.domain.operating_parameters import QUOTAS_LIFE
from duetime.domain.quotas import StoredQuotas

if TYPE_CHECKING:
    from duetime.domain.quotas import Quotas
    from duetime.domain.times import Millis
    from duetime.ports.runtime import Runtime
    from duetime.ports.stores import QuotaStore


@dataclass(slots=True)
class QuotaBook:
    """Caches the quotas of all owners in one process; reads them at most every `QUOTAS_LIFE`.

    If a read fails, the last quotas stay in force, or the defaults if there are none.
    """

    store: QuotaStore
    runtime: Runtime
    defaults: Quotas
    _known: StoredQuotas | None = field(default=None, init=False)
    _asked_at: Millis = field(default=0, init=False)

    def of(self, owner: str) -> Quotas:
        """The quotas of an owner as of a moment ago. Never raises."""
        now = self.runtime.now()
        if self._known is None or now - self._asked_at >= QUOTAS_LIFE:
            # Set before the read: other threads continue with the known quotas. Without any, they read, too.
            self._asked_at = now
            try:
                self._known = self.store.read(consistent=False)
            except (Unavailable, RecordUnreadable) as error:
                self.runtime.telemetry.note("the quotas could not be read", error=str(error))
                self._known = self._known or StoredQuotas()
        return self._known.limits(owner, self.defaults)
