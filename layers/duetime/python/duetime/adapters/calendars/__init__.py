"""Calendars as files: what other programs write."""
