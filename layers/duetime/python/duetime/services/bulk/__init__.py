"""Bulk operations: requests that change many tasks and continue after the response."""
