"""Makes tasks of events."""
