"""Live updates: the ticket over REST, and the messages over the WebSocket."""
