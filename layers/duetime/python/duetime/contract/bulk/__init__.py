"""The REST API for bulk requests and bulk operations."""
