"""Runs two operations on one subject, with every interleaving of their AWS calls that has at most two switches."""
