"""Recurring work: when it is due, in whose clock, and why it was not run when it was not."""
