"""Simulates large deployments, based on AWS's documented limits and a task's counted usage."""
