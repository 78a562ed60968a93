"""Explains why tasks wait or were late, and why schedules did not run."""
