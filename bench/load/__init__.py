"""Load tests of a local stack, which measure its capacity and check its behavior under overload."""
