"""Runs graphs of tasks: the end of a node, the run's progress, and requests of users."""
