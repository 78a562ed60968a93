"""The `duetime` command."""
