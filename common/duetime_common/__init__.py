"""What the client and the core share. It imports the standard library only; pydantic where it is installed."""
