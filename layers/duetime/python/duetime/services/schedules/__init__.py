"""Schedules: managed, previewed, and expanded into tasks."""
