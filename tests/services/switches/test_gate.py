"""The rules that a process uses while switches cannot be read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from duetime.adapters.dynamodb.switches import DynamoSwitchStore
from duetime.domain.errors import Unavailable
from duetime.domain.operating_parameters import SWITCHES_LIFE
from duetime.domain.switches import Switch, SwitchKey, SwitchScope
from duetime.ports.runtime import Runtime
from duetime.services.start_gates import SwitchGate
from duetime_testing.fakes.dynamodb import FakeDynamoDB
from duetime_testing.fakes.task_table import new_table
from duetime_testing.fakes.telemetry import FakeTelemetry
from duetime_testing.simulation.virtual_time import SeededRandom
from tests.adapters.clouds import EXECUTOR
from tests.clocks import StandingClock
from tests.domain.factories import task

if TYPE_CHECKING:
    from duetime.domain.switches import StoredSwitches


class FaultyStore(DynamoSwitchStore):
    """A store of switches that can fail."""

    def __init__(self) -> None:
        fake: Any = FakeDynamoDB()
        super().__init__(fake, new_table(fake))
        self.readable = True

    def read(self, *, consistent: bool) -> StoredSwitches:
        """Read all switches, unless the store is failing."""
        if not self.readable:
            raise Unavailable("away")
        return super().read(consistent=consistent)


def new_gate() -> tuple[FaultyStore, StandingClock, SwitchGate]:
    """The gate of a new process, with its store and clock."""
    store, clock = FaultyStore(), StandingClock()
    return store, clock, SwitchGate(store, Runtime(clock, SeededRandom(), EXECUTOR, FakeTelemetry()))


def test_the_last_known_switches_apply_while_the_table_is_down() -> None:
    """In an outage of the table, the last known switches apply: stopped tasks stay stopped, and other tasks start."""
    store, clock, gate = new_gate()
    stop = Switch(SwitchKey(SwitchScope.TYPE, "report"), stopped=True, reason="an incident")
    store.save(store.read(consistent=True).operators.with_switch(stop), "n")
    for readable in (True, False):
        store.readable = readable
        clock.at += 10 * SWITCHES_LIFE
        held = gate.held(task())
        assert held is not None
        assert "an incident" in held.reason
        assert gate.held(task(type="mail")) is None


def test_tasks_wait_until_a_process_has_read_the_switches() -> None:
    """Until a process has read the switches, tasks wait for some seconds."""
    store, clock, gate = new_gate()
    store.readable = False
    held = gate.held(task())
    assert held is not None
    assert SWITCHES_LIFE <= held.until - clock.now() <= 2 * SWITCHES_LIFE
    assert "could not be read" in held.reason
    assert gate.caps(task()) == ()
    store.readable = True
    assert gate.held(task()) is None
