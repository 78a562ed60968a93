"""Leases of pull workers over REST."""
