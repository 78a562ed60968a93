"""Leases tasks to pull workers, and processes the workers' reports."""
