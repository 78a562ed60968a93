"""Defines topologies, which are graphs of tasks, and makes all decisions about them in pure functions."""
