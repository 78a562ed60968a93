"""Explanations: why a task has not run yet, the times of its parts, and why a schedule did not run at a time."""
