"""If a deployment brings newer time zone rules, future occurrences follow these rules and run once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from duetime.domain.schedules import time_zones
from duetime.domain.times import DAY
from duetime.services.schedules import expansion_planner, schedule_writer
from tests.parts import others_slow
from tests.scenarios.scenario import HOUR, MINUTE
from tests.scenarios.schedules import Schedules

if TYPE_CHECKING:
    from collections.abc import Iterator
    from zoneinfo import ZoneInfo

    from duetime.domain.times import Millis

ZONE = "Europe/London"
_read = time_zones._zone_info


class Rules:
    """Time zone rules by version."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self._monkeypatch = monkeypatch

    def deploy(self, version: str, like: str) -> None:
        """Give the zone another zone's rules."""

        def read(name: str) -> ZoneInfo:
            return _read(like if name == ZONE else name)

        self._monkeypatch.setattr(time_zones, "_zone_info", read)
        time_zones._periods.cache_clear()
        for module in (expansion_planner, schedule_writer):
            self._monkeypatch.setattr(module, "tzdata_version", lambda: version)


@pytest.fixture
def rules() -> Iterator[Rules]:
    """Time zone rules that a test can deploy; the package's own rules are restored afterwards."""
    with pytest.MonkeyPatch.context() as monkeypatch:
        yield Rules(monkeypatch)
    time_zones._periods.cache_clear()


@pytest.mark.parametrize("catch_up_seconds", others_slow([0, 3600]))
@pytest.mark.parametrize(("old", "new", "begins"), others_slow([(12, 9, 12), (9, 12, 12)]), ids=["earlier", "later"])
def test_the_next_occurrence_follows_newer_rules(
    rules: Rules, old: Millis, new: Millis, begins: Millis, catch_up_seconds: int
) -> None:
    """After new rules move 09:00 by three hours in UTC, the next occurrence runs at the new time."""
    clocks = {12: "America/Sao_Paulo", 9: "UTC"}
    rules.deploy("2026a", clocks[old])
    with Schedules() as schedules:
        midnight = schedules.now // DAY * DAY + (DAY if schedules.now % DAY > 6 * HOUR else 0)
        schedules.make(cron="0 9 * * *", timezone=ZONE, catch_up_seconds=catch_up_seconds)
        assert schedules.schedule()["tzdata"] == "2026a"
        schedules.run(MINUTE)
        # Some hours pass without work.
        schedules.ticking = False
        schedules.time.run_until(midnight + 8 * HOUR)
        rules.deploy("2026b", clocks[new])
        schedules.time.run_until(midnight + begins * HOUR - 10 * MINUTE)
        schedules.ticking = True
        schedules.time.run_until(midnight + begins * HOUR + 10 * MINUTE)
        assert schedules.ran() == {midnight + new * HOUR: 1}
        (effect,) = schedules.effects
        assert abs(effect.at - midnight - begins * HOUR) <= 5 * MINUTE
        shown = schedules.schedule()
        assert shown["tzdata"] == "2026b"
        assert "have changed from version 2026a to 2026b" in str(shown["skipped_runs"])
        assert shown["upcoming"][0]["scheduled_at"][11:16] == f"{new:02}:00"
