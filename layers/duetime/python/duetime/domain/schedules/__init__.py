"""Schedules: recurring work, its times in time zones, and why occurrences did not run."""
