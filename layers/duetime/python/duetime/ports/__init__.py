"""Protocols for everything that the use cases need from outside; adapters and in-memory fakes implement them."""
