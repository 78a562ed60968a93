"""What the table's stream tells: how a record was before a write, and how it is after."""
