"""Jobs that AWS runs for tasks: watches them until they end."""
