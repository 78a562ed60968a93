"""Adapters: implementations of the ports; the only part of duetime that calls AWS."""
