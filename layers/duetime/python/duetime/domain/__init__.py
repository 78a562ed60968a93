"""Task states and rules as immutable values and pure functions; the current time is always a parameter."""
