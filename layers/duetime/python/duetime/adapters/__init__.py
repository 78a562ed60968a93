"""The adapters, which implement the ports. Only adapters call AWS."""
