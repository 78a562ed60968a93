"""The dead-letter function: handles messages that were delivered too often."""
