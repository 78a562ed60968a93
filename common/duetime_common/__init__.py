"""Code shared by the client and the core. Only conditions and payload classes need third-party packages."""
