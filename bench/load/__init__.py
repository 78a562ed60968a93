"""Load tests of one machine's stack: its capacity and its behavior under overload."""
