"""Protocols for everything that the use cases need from outside, which adapters and in-memory fakes implement."""
