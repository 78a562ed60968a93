"""Use cases of clients with tasks."""
