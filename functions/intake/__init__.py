"""The intake function, which creates tasks from events."""
