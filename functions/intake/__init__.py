"""The intake function, which creates, cancels and wakes tasks for events."""
