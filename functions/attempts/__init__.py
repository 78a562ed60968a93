"""The attempts function: what handlers in packages of their own report while they run."""
