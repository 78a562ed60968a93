"""What clients do with tasks."""
