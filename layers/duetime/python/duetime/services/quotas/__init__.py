"""Enforces each owner's quotas, and lets operators set them."""
