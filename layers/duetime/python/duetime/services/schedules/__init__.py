"""Manages and previews schedules, and expands them into tasks."""
