"""Writes the definition of the deployed state machine to the file that the simulated state machine reads."""

import json

from duetime_cdk.topology_state_machine import definition
from duetime_testing.simulation.state_machine import DEFINITION

if __name__ == "__main__":
    DEFINITION.write_text(json.dumps(definition("function"), indent=2) + "\n", encoding="utf-8")
