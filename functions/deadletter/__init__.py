"""The dead-letter function, which handles messages that were delivered too often."""
