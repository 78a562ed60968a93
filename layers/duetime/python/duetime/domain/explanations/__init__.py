"""Explains why a task has not run yet, where its time went, and why a schedule did not run at a time."""
