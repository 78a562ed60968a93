"""Reads files of schedules and tasks, compares schedules with the existing ones, and applies the differences."""
