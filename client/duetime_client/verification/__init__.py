"""Verifying a deployment: real tasks on it, and what became of each, held against what duetime promises."""
