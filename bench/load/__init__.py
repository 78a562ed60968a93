"""Load tests: the capacity of one machine's stack, and its behaviour under overload."""
