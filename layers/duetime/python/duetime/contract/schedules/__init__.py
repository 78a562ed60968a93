"""The REST API for schedules and calendars."""
