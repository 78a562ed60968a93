"""Adapters are the implementations of the ports, and the only part of duetime that calls AWS."""
