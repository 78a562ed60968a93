"""Locks: taken, handed on, and freed by force."""
