from __future__ import annotations

from typing import Any

import pytest

from duetime.domain.times import MINUTE
from duetime_testing.fakes.telemetry import FakeTelemetry
from tests.simulation.fault_simulation import FaultSimulation, Theme

PAYLOADS = ("json", f"{2654435761 % 2**32:08x}")
"""Strings from the payloads that users send in a fault simulation."""


@pytest.mark.slow
def test_no_log_line_contains_a_payload_despite_faults(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a simulation with faults, no log line contains a payload."""
    notes: list[tuple[str, dict[str, Any]]] = []
    monkeypatch.setattr(FakeTelemetry, "note", lambda _self, text, **facts: notes.append((text, facts)))
    for seed in range(3, 7):
        FaultSimulation(seed, 0.1, Theme.TASKS).simulate(2 * MINUTE)
    assert len({text for text, _ in notes}) > 3
    assert [note for note in notes if any(text in repr(note) for text in PAYLOADS)] == []
