"""Topologies: graphs of tasks, and every decision about them as a pure function."""
