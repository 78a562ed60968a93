"""Lets functions work only in the active Region."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from duetime.domain.errors import RegionNotActive, Unavailable
from duetime.domain.operating_parameters import REGION_LIFE, REGION_TRUST

if TYPE_CHECKING:
    from duetime.domain.regions import ActiveRegion
    from duetime.domain.times import Millis
    from duetime.ports.restore import RegionStore
    from duetime.ports.runtime import Clock, Telemetry


@dataclass(slots=True)
class RegionGate:
    """Decides whether this Region is active; in the active Region, reads the record at most once every `REGION_LIFE`.

    An inactive state is never cached, so that the first message after a takeover is not rejected.

    Attributes:
        own: this Region.
        first: the Region that is active before the first takeover.
        least_epoch: the setting `epoch`.
    """

    store: RegionStore
    clock: Clock
    own: str
    first: str
    least_epoch: int
    _active_since: Millis | None = field(default=None, init=False)
    """When the record was last read, if it named this Region as the active Region; otherwise `None`."""
    _epoch: int = field(default=0, init=False)
    _found: ActiveRegion | None = field(default=None, init=False)

    def is_active(self) -> bool:
        """Whether this Region may process tasks."""
        now = self.clock.now()
        if self._is_known(now, REGION_LIFE):
            return True
        try:
            found = self._found = self.store.read()
        except Unavailable:
            if self._is_known(now, REGION_TRUST):
                return True
            raise
        is_active = self.own == self.first if found is None else found.is_open and found.name == self.own
        self._active_since = now if is_active else None
        if is_active:
            self._epoch = 0 if found is None else found.epoch
        return is_active

    def _is_known(self, now: Millis, life: Millis) -> bool:
        return self._active_since is not None and 0 <= now - self._active_since < life

    def check(self, *, is_report: bool = False) -> None:
        """Reject a change in a Region that is not active.

        Args:
            is_report: whether the change is an attempt's report; attempts in this Region may report until the other
                Region is open.

        Raises:
            RegionNotActive: another Region is active; the error names that Region.
        """
        if not self.is_active():
            active = self._found
            if is_report and active is not None and not active.is_open and active.name != self.own:
                return
            name, is_open = (self.first, True) if active is None else (active.name, active.is_open)
            raise RegionNotActive(name, is_open=is_open)

    def note_standby(self, telemetry: Telemetry) -> None:
        """Report zero trigger lag while the other Region is active, because alarms treat a missing value as a fault.

        While a takeover is not complete, no Region processes tasks, and the alarms must fire.
        """
        if self._found is None or self._found.is_open:
            telemetry.measure("cursor_lag", 0)
            telemetry.measure("tick_age", 0)

    def epoch(self) -> int:
        """The epoch for new fences, which is the epoch in which this Region was last active."""
        return max(self.least_epoch, self._epoch)
