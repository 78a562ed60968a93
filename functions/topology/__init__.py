"""The states of the state machine that runs topologies."""
