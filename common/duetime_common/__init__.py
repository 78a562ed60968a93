"""Code shared by the client and the core; only conditions and payload classes need more than the standard library."""
