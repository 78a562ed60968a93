"""The dead-letter function: looks into messages that were delivered too often."""
