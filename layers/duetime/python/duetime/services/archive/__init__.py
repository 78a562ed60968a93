"""The archive of ended tasks."""
