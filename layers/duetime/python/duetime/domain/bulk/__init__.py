"""Bulk operations: one request for many tasks."""
