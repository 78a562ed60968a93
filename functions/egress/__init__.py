"""The egress: makes HTTP calls for others, with no permission but to read what it signs with."""
