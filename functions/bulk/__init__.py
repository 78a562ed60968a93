"""The states of the state machine that frames the runs of topologies."""
