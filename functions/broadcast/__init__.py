"""Broadcast: reads the table's stream and tells others of the changes; no task waits for it."""
