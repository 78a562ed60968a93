"""Telling other systems of changes, by events."""
