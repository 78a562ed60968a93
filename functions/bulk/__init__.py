"""The bulk function: runs bulk operations."""
