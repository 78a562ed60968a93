"""Schedules and calendars over REST."""
