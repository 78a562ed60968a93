"""Records the end of an attempt, for all kinds of workers."""
