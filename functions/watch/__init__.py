"""The watch function, which manages the connections of the WebSocket API, and their subscriptions."""
