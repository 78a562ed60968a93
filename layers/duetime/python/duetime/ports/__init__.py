"""Protocols for everything that use cases need from outside, which adapters, other use cases and tests implement."""
