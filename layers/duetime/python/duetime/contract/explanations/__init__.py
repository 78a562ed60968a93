"""Explanations over REST: why a task waits or was late, and why a schedule did not run at a time."""
