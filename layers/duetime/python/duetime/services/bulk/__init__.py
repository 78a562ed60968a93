"""Bulk operations: requests that concern many tasks, and go on after they were answered."""
