"""Writes the definition of the deployed state machine where the simulated one reads it."""

from duetime_testing.simulation.state_machine import DEFINITION, frozen
from infra.topology_state_machine import definition

if __name__ == "__main__":
    DEFINITION.write_text(frozen(definition("function")), encoding="utf-8")
