"""Watch: the connections of the WebSocket API, and what their clients subscribe to."""
