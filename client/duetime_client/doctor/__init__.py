"""Diagnosis of a deployment: read-only checks of its AWS resources and its API, each with what to do."""
