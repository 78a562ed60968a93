"""Load tests: the capacity of one machine's stack, and its behavior under overload."""
