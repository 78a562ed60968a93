"""The broadcast function: reads the table's stream and passes changes to consumers; no task waits for it."""
