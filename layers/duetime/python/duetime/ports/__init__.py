"""What the use cases need of the outside: protocols that adapters implement, for real and in memory."""
