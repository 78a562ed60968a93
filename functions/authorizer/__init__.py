"""The watch function: the connections of the WebSocket API, and their subscriptions."""
