"""Protocols for everything that the use cases need from outside, implemented by adapters and in memory."""
