"""The clock and the time zone of a command; tests replace them."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from duetime_client.polling import utc_now

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime, tzinfo


@dataclass(frozen=True, slots=True)
class Clock:
    """The clock, the time zone and the function that waits."""

    now: Callable[[], datetime] = utc_now
    zone: tzinfo | None = None
    """The zone in which times are read and shown; `None` for this machine's zone."""
    sleep: Callable[[float], object] = time.sleep

    def local(self, moment: datetime) -> datetime:
        """Convert a time to the reader's zone; a time without a zone is assumed to be in that zone."""
        if moment.tzinfo is None and self.zone is not None:
            return moment.replace(tzinfo=self.zone)
        return moment.astimezone(self.zone)
