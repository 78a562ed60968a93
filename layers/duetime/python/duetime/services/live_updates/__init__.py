"""Live updates: tickets, connections, subscriptions, and the push of changes."""
