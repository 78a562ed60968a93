"""Schedules: managing, previewing, and expanding them into tasks."""
