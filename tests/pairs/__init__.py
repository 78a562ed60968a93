"""Runs of two operations on one subject, in every interleaving of their AWS calls with at most two switches."""
