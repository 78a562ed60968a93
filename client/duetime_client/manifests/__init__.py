"""Reads files of schedules and tasks, compares schedules with existing schedules, and applies the differences."""
