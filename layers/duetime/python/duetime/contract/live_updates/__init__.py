"""The contract for live updates, which consists of the ticket over REST and the messages over the WebSocket."""
