"""Runs graphs of tasks: ends of nodes, progress of runs, and user requests."""
