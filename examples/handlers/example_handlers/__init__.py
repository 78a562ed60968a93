"""Example handlers, which are registered for their task types when this package is imported."""

from __future__ import annotations

from example_handlers import ci, echo, fan_out, sleep

__all__ = ["ci", "echo", "fan_out", "sleep"]
