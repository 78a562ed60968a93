"""Writes the definition of the deployed state machine where the simulated one reads it."""

from duetime_cdk.topology_state_machine import definition
from duetime_testing.simulation.state_machine import DEFINITION, frozen

if __name__ == "__main__":
    DEFINITION.write_text(frozen(definition("function")), encoding="utf-8")
