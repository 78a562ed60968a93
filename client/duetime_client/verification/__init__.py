"""Verifies a deployment by running real tasks on it and comparing the results with duetime's guarantees."""
