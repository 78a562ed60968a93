"""Bulk operations: one request that concerns many tasks."""
