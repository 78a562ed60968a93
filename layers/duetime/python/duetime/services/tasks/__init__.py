"""Carries out the operations on tasks that clients request."""
