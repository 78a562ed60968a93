"""The adapters of every port, each held to the port's own sentences."""
