"""Telling others of the writes of records."""
