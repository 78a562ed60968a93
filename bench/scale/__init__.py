"""Simulates large scale from AWS's documented limits and a task's counted usage."""
