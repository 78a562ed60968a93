"""The topology function, which runs the states of the state machine for topologies."""
