"""Topologies: graphs of tasks, and all decisions about them as pure functions."""
