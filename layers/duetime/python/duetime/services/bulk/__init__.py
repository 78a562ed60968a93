"""Runs bulk operations, which are requests that change many tasks and continue after the response."""
