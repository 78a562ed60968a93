"""Quotas: each owner's limits and usage, and the right to change them."""
