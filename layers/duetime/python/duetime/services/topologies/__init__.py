"""Runs graphs of tasks: handles the ends of nodes, the progress of runs, and user requests."""
