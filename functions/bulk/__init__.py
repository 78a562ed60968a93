"""The bulk function, which runs bulk operations."""
