"""Simulates large deployments, based on AWS's documented limits and on the counted usage of one task."""
