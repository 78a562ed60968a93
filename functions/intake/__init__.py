"""The intake function: creates tasks from events."""
