"""Diagnoses a deployment with read-only checks of its AWS resources and its API, and gives advice for each finding."""
