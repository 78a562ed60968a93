"""Schedules: manages and previews them, and expands them into tasks."""
