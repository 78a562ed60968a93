"""Live updates: the ticket over REST, and the messages of the WebSocket."""
