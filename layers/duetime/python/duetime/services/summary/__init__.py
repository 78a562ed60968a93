"""Counts tasks, and reads the counts."""
