"""Estimates of what tasks will cost, before they run."""
