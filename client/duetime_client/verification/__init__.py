"""Verification of a deployment: runs real tasks on it and compares them with duetime's guarantees."""
