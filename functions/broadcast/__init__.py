"""Broadcast: reads the table's stream and passes the changes to consumers; no task waits for it."""
