"""Schedules, which define recurring work, compute its times in time zones, and explain why occurrences did not run."""
