"""Every port in memory, meaning the same as on AWS: for fast tests and for the simulation."""
