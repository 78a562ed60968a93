"""Example handlers: importing this package registers each of them for its task type."""

from __future__ import annotations

from example_handlers import ci, echo, fan_out, sleep

__all__ = ["ci", "echo", "fan_out", "sleep"]
