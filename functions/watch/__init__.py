"""The watch function, which manages the WebSocket API's connections and their subscriptions."""
